//! A Slurm of our own: munged, slurmctld and slurmd with their files in one folder and ports of their own. No service of the
//! machine is asked or touched.

use crate::program::workshop::{said, set_mode, skipped};
use std::fs;
use std::io::Read;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};

const PROGRAMS: [&str; 7] = ["munged", "slurmctld", "slurmd", "sbatch", "squeue", "scontrol", "scancel"];

/// Daemons, ended when it is dropped.
pub struct Site {
    folder: tempfile::TempDir,
    daemons: Vec<Child>,
}

/// Where a program lies.
fn program(name: &str) -> Option<PathBuf> {
    let folders = ["/usr/local/sbin", "/usr/sbin", "/sbin", "/usr/local/bin", "/usr/bin", "/bin"];
    folders.iter().map(|folder| Path::new(folder).join(name)).find(|path| path.is_file())
}

/// Whether the test can have one; prints why not.
pub fn can_start(test: &str) -> bool {
    if !rustix::process::geteuid().is_root() {
        skipped(test, "needs root to start slurmd");
        return false;
    }
    if let Some(missing) = PROGRAMS.iter().find(|name| program(name).is_none()) {
        skipped(
            test,
            &format!("needs the program {missing} (Debian: slurm-wlm, munge; `scripts/setup test` installs them)"),
        );
        return false;
    }
    true
}

impl Site {
    /// Starts one with a single node, and waits until the node takes jobs.
    pub fn start() -> Site {
        let folder = tempfile::Builder::new().prefix("pgstrata-slurm-").tempdir().unwrap();
        set_mode(folder.path(), 0o755);
        let mut site = Site { folder, daemons: Vec::new() };
        for name in ["state", "spool"] {
            fs::create_dir(site.path(name)).unwrap();
        }
        // Whoever knows the key is root to the daemons.
        let mut key = [0; 128];
        fs::File::open("/dev/urandom").and_then(|mut random| random.read_exact(&mut key)).unwrap();
        fs::write(site.path("munge.key"), key).unwrap();
        set_mode(&site.path("munge.key"), 0o600);
        fs::write(site.path("slurm.conf"), site.configuration()).unwrap();
        let own = |name: &str| site.path(name).display().to_string();
        let munged = [
            "--foreground".to_owned(),
            "--num-threads=2".to_owned(),
            format!("--socket={}", own("munge.socket")),
            format!("--key-file={}", own("munge.key")),
            format!("--seed-file={}", own("munge.seed")),
            format!("--pid-file={}", own("munge.pid")),
            format!("--log-file={}", own("munge.log")),
        ];
        let conf = own("slurm.conf");
        site.daemon("munged", &munged.each_ref().map(String::as_str));
        site.wait("munged", |site| site.path("munge.socket").exists());
        site.daemon("slurmctld", &["-D", "-c", "-f", &conf]);
        site.daemon("slurmd", &["-D", "-c", "-f", &conf, "-N", "node1"]);
        site.wait("an idle node", |site| {
            let shown = site.slurm("scontrol", &["show", "node", "node1"]);
            String::from_utf8_lossy(&shown.stdout).contains("State=IDLE ")
        });
        site
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// `SLURM_CONF` of whoever is to use it.
    pub fn conf(&self) -> PathBuf {
        self.path("slurm.conf")
    }

    /// `cred_expire` is also how long a task waits that is requeued; without it that is two minutes.
    fn configuration(&self) -> String {
        let listeners: Vec<TcpListener> = (0..2).map(|_| TcpListener::bind("127.0.0.1:0").unwrap()).collect();
        let ports: Vec<u16> = listeners.iter().map(|listener| listener.local_addr().unwrap().port()).collect();
        let host = fs::read_to_string("/proc/sys/kernel/hostname").unwrap();
        let host = host.trim().split('.').next().unwrap();
        let folder = self.folder.path().display();
        format!(
            "ClusterName=pgstrata\nSlurmctldHost={host}(127.0.0.1)\nSlurmctldPort={}\nSlurmUser=root\nSlurmdUser=root\n\
             AuthType=auth/munge\nCredType=cred/munge\nAuthInfo=socket={folder}/munge.socket,cred_expire=10\n\
             CommunicationParameters=NoInAddrAny,NoCtldInAddrAny\n\
             StateSaveLocation={folder}/state\nSlurmdSpoolDir={folder}/spool\n\
             SlurmctldPidFile={folder}/slurmctld.pid\nSlurmdPidFile={folder}/slurmd.pid\n\
             SlurmctldLogFile={folder}/slurmctld.log\nSlurmdLogFile={folder}/slurmd.log\n\
             ProctrackType=proctrack/linuxproc\nTaskPlugin=task/none\nSelectType=select/linear\nSchedulerType=sched/builtin\n\
             SchedulerParameters=batch_sched_delay=1,sched_interval=2\nJobAcctGatherType=jobacct_gather/none\n\
             AccountingStorageType=accounting_storage/none\nMailProg=/bin/true\nMpiDefault=none\nSwitchType=switch/none\nKillWait=5\n\
             SlurmdParameters=config_overrides\nReturnToService=2\n\
             NodeName=node1 NodeHostname={host} NodeAddr=127.0.0.1 Port={} CPUs=1 State=UNKNOWN\n\
             PartitionName=all Nodes=node1 Default=YES MaxTime=INFINITE State=UP\n",
            ports[0], ports[1]
        )
    }

    fn daemon(&mut self, name: &str, args: &[&str]) {
        let log = fs::File::create(self.path(&format!("{name}.out"))).unwrap();
        // They end with the test, however it ends.
        let mut command = Command::new("setpriv");
        command
            .args(["--pdeathsig", "KILL", "--"])
            .arg(program(name).unwrap())
            .args(args)
            .current_dir(self.folder.path())
            .stdin(Stdio::null());
        self.daemons.push(command.stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap());
    }

    /// A command of Slurm's.
    pub fn slurm(&self, name: &str, args: &[&str]) -> Output {
        Command::new(program(name).unwrap()).args(args).env("SLURM_CONF", self.conf()).output().unwrap()
    }

    /// Same, which must succeed.
    pub fn succeed(&self, name: &str, args: &[&str]) -> String {
        let output = self.slurm(name, args);
        assert!(output.status.success(), "{name} {args:?}: {}\n{}", said(&output), self.logs());
        String::from_utf8(output.stdout).unwrap()
    }

    /// Waits until something is so.
    pub fn wait(&self, what: &str, is_so: impl Fn(&Site) -> bool) {
        let begun = Instant::now();
        while !is_so(self) {
            assert!(begun.elapsed() < Duration::from_secs(300), "no {what} in five minutes\n{}", self.logs());
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// Waits until no task waits or runs.
    pub fn wait_for_an_empty_queue(&self) {
        self.wait("empty queue", |site| site.succeed("squeue", &["--noheader"]).trim().is_empty());
    }

    /// What the daemons said, for an assertion's message.
    pub fn logs(&self) -> String {
        let log = |name: &str| format!("--- {name}\n{}", fs::read_to_string(self.path(name)).unwrap_or_default());
        ["munge.log", "munged.out", "slurmctld.log", "slurmd.log", "slurmd.out"].map(log).join("\n")
    }
}

impl Drop for Site {
    fn drop(&mut self) {
        // What still runs, where a test has failed.
        self.slurm("scancel", &["--signal=KILL", "--full", "--user=root"]);
        let is_idle = || self.slurm("squeue", &["--noheader"]).stdout.trim_ascii().is_empty();
        let begun = Instant::now();
        while !is_idle() && begun.elapsed() < Duration::from_secs(10) {
            std::thread::sleep(Duration::from_millis(50));
        }
        for daemon in self.daemons.iter_mut().rev() {
            daemon.kill().ok();
            daemon.wait().ok();
        }
    }
}
