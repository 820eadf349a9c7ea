//! Stacks x knobs of the machine x workloads x their options x servers x settings: every case of the plan, before
//! exclusions.

use super::build::{self, BUILD};
use super::ids::{IdParts, distinct_parts};
use super::limits::{MAX_CASES, Span};
use super::machine::MachineDraft;
use super::options::{Axis, combinations, options};
use super::postgres::{BIN_AXIS, INITDB, PostgresDraft, initdb_arguments};
use super::problem::{Problem, Problems};
use super::stacks::StackDraft;
use super::values::Choice;
use super::workloads::WorkloadDraft;
use crate::record::build::BuildSpec;
use crate::record::case::{CaseSpec, PostgresSpec, WorkloadSpec};
use crate::record::options::Options;
use std::collections::{BTreeMap, HashMap};
use std::path::Path;

/// Inputs of the matrix.
pub(super) struct MatrixDraft<'c> {
    /// `None` if the plan names no guests.
    pub guest: Option<Axis>,
    pub machine: MachineDraft<'c>,
    /// In the order of the plan.
    pub stacks: Vec<StackDraft<'c>>,
    /// Options of `age` that only workloads with a server have.
    pub age_of_clusters: &'c [&'c str],
    pub postgres: PostgresDraft,
    /// Base of relative paths in builds.
    pub folder: &'c Path,
    /// In the order of the plan.
    pub workloads: Vec<WorkloadDraft<'c>>,
}

/// Value of a case: as shown and as compared.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct CaseValue {
    pub text: String,
    pub identity: String,
}

/// A case that may still be excluded.
#[derive(Debug, Clone)]
pub(super) struct CaseCandidate {
    /// The case; its id is still empty.
    pub case: CaseSpec,
    /// Every value that `[[exclude]]` can match.
    pub values: BTreeMap<String, CaseValue>,
    pub parts: IdParts,
    /// Everything the case does, except the workload's name: cases equal in this are duplicates.
    sameness: String,
    /// Span of its workload's name.
    place: Span,
}

/// Crosses all axes; stacks vary slowest, then workloads, the stacks' options, guests, knobs of the machine, the
/// workloads' options, servers, settings.
pub(super) fn cross(draft: &MatrixDraft<'_>, problems: &mut Problems) -> Vec<CaseCandidate> {
    refuse_clashing_names(draft, problems);
    let server = draft.postgres.axes();
    if !is_few(draft, &server) {
        let message = format!("the plan has more than {MAX_CASES} cases");
        problems.add(Problem::at(&(0..0), message).help("use shorter lists of values"));
    }
    if !problems.is_empty() {
        return Vec::new();
    }
    let servers = combinations(&server, MAX_CASES).unwrap_or_default();
    let bins: Vec<String> = draft.postgres.bin.choices.iter().map(|choice| choice.value.plain()).collect();
    let short = distinct_parts(&bins);
    let of_server = (draft, server.as_slice(), &bins.into_iter().zip(short).collect());
    let mut candidates = Vec::new();
    for stack in &draft.stacks {
        let alone = stack.wal_alone().age_without(draft.age_of_clusters);
        for workload in &draft.workloads {
            let stack = if workload.entry.needs_server { stack } else { &alone };
            let axes = stack.axes();
            let below = [axes.as_slice(), draft.guest.as_slice(), &draft.machine.knobs].concat();
            for of_all in combinations(&below, MAX_CASES).unwrap_or_default() {
                let (of_stack, others) = of_all.split_at(axes.len());
                let (of_guest, of_machine) = others.split_at(draft.guest.as_slice().len());
                for chosen in combinations(&workload.axes, MAX_CASES).unwrap_or_default() {
                    let mut candidate = start((stack, &axes, of_stack), workload, &chosen);
                    for (axis, choice) in draft.guest.iter().chain(&draft.machine.knobs).zip(others) {
                        candidate.place(axis, choice);
                    }
                    candidate.case.guest = of_guest.first().map(|choice| choice.value.plain());
                    candidate.case.machine = draft.machine.options(of_machine);
                    if workload.entry.needs_server {
                        candidates.extend(servers.iter().map(|with| add_server(&candidate, of_server, with)));
                    } else {
                        candidates.push(candidate);
                    }
                }
            }
        }
    }
    candidates
}

/// Axes with equal names would be ambiguous in `[[exclude]]` and in the cases.
fn refuse_clashing_names(draft: &MatrixDraft<'_>, problems: &mut Problems) {
    let of_stacks: Vec<Axis> = draft.stacks.iter().flat_map(StackDraft::axes).collect();
    let knobs = draft.machine.knobs.iter().chain(&draft.machine.queue);
    let knobs = knobs.map(|knob| (knob, "a knob", "the knob of [machine]"));
    for (axis, what, here) in knobs.chain(draft.guest.iter().map(|guest| (guest, "an axis", "the guests"))) {
        let mut others = of_stacks.iter().chain(&draft.postgres.settings);
        if let Some(other) = others.find(|other| other.name == axis.name && other.span != axis.span) {
            let problem = Problem::at(&other.span, format!("`{}` is also the name of {what}", other.name));
            problems.add(problem.also(&axis.span, here).help("rename the device or setting"));
        }
    }
    for setting in &draft.postgres.settings {
        let options = draft.workloads.iter().flat_map(|workload| &workload.axes);
        if let Some(option) = options.into_iter().find(|option| option.name == setting.name) {
            let message = format!("setting `{0}` has the same name as the workload option `{0}`", setting.name);
            problems.add(
                Problem::at(&setting.span, message)
                    .also(&option.span, "the option")
                    .help("write the setting in upper case: PostgreSQL setting names are case-insensitive"),
            );
        }
    }
}

/// True if the plan stays within the maximum number of cases.
fn is_few(draft: &MatrixDraft<'_>, server: &[Axis]) -> bool {
    let servers = product(server);
    let machines = product(&draft.machine.knobs).saturating_mul(product(draft.guest.as_slice()));
    let mut all = 0usize;
    for stack in &draft.stacks {
        let (whole, alone) = (stack.axes(), stack.wal_alone().age_without(draft.age_of_clusters).axes());
        let (whole, alone) = (product(&whole).saturating_mul(servers), product(&alone));
        for workload in &draft.workloads {
            let with = if workload.entry.needs_server { whole } else { alone };
            all = all.saturating_add(product(&workload.axes).saturating_mul(with).saturating_mul(machines));
        }
    }
    all <= MAX_CASES
}

/// Number of combinations of these axes.
fn product(axes: &[Axis]) -> usize {
    axes.iter().fold(1, |n, axis| n.saturating_mul(axis.choices.len()))
}

/// The case without a server.
fn start(
    (stack, axes, of_stack): (&StackDraft<'_>, &[Axis], &[&Choice]),
    workload: &WorkloadDraft<'_>,
    chosen: &[&Choice],
) -> CaseCandidate {
    let (stack_name, workload_name) = (&stack.name.text, &workload.name.text);
    let case = CaseSpec {
        id: String::new(),
        guest: None,
        stack: stack.spec(of_stack),
        postgres: None,
        machine: Options::default(),
        age: stack.age(of_stack),
        workload: WorkloadSpec {
            name: workload_name.clone(),
            kind: workload.entry.name.to_owned(),
            options: options(workload.entry, workload.folder, &workload.axes, chosen),
        },
        axes: BTreeMap::new(),
    };
    let mut candidate = CaseCandidate {
        case,
        values: BTreeMap::new(),
        parts: IdParts { head: [stack_name.clone(), workload_name.clone()], axes: Vec::new() },
        sameness: format!("{stack_name:?} {:?}", workload.entry.name),
        place: workload.name.span.clone(),
    };
    for (axis, name) in [("stack", stack_name), ("workload", workload_name)] {
        candidate.case.axes.insert(axis.to_owned(), name.clone());
        candidate.values.insert(axis.to_owned(), CaseValue { text: name.clone(), identity: name.clone() });
    }
    // Options are compared sorted by name, because their order in the plan does not matter.
    let mut same: Vec<String> = Vec::new();
    for (axis, choice) in axes.iter().zip(of_stack).chain(workload.axes.iter().zip(chosen)) {
        candidate.add(axis, choice, &choice.value.plain());
        same.push(format!("{:?}={:?}", axis.name, choice.identity));
    }
    same.sort_unstable();
    candidate.sameness.push_str(&same.concat());
    candidate
}

fn add_server(
    without: &CaseCandidate,
    (draft, axes, short): (&MatrixDraft<'_>, &[Axis], &HashMap<String, String>),
    chosen: &[&Choice],
) -> CaseCandidate {
    let mut candidate = without.clone();
    let built = (!draft.postgres.build.is_empty()).then(BuildSpec::default);
    let mut spec = PostgresSpec { bin: String::new(), build: built, settings: BTreeMap::new(), initdb: Vec::new() };
    for (axis, choice) in axes.iter().zip(chosen) {
        let text = choice.value.plain();
        let option = axis.option.0.as_str();
        candidate.add(axis, choice, short.get(&text).filter(|_| option == BIN_AXIS).unwrap_or(&text));
        match option {
            BIN_AXIS => spec.bin = text,
            BUILD => spec.build.iter_mut().for_each(|spec| build::enter(spec, axis, &choice.value, draft.folder)),
            INITDB if axis.name.starts_with(INITDB) => spec.initdb.extend(initdb_arguments(axis, &choice.value)),
            _ => drop(spec.settings.insert(axis.name.clone(), text)),
        }
    }
    candidate.sameness.push_str(&format!("{spec:?}"));
    candidate.case.postgres = Some(spec);
    candidate
}

impl CaseCandidate {
    /// Sets a value of the environment: guest, knob of the machine.
    fn place(&mut self, axis: &Axis, choice: &Choice) {
        self.add(axis, choice, &choice.value.plain());
        self.sameness.push_str(&format!(" {:?}={:?}", axis.name, choice.identity));
    }

    /// Sets the value of an axis; `shown` is its form in the id.
    fn add(&mut self, axis: &Axis, choice: &Choice, shown: &str) {
        let text = choice.value.plain();
        if axis.varies() {
            self.parts.axes.push((axis.name.clone(), shown.to_owned(), text.clone()));
            self.case.axes.insert(axis.name.clone(), text.clone());
        }
        self.values.insert(axis.name.clone(), CaseValue { text, identity: choice.identity.clone() });
    }
}

/// Rejects cases that are equal but for the workload's name. Equal stacks are allowed: an A/A comparison.
pub(super) fn refuse_duplicates(candidates: &[CaseCandidate], problems: &mut Problems) {
    let mut seen: HashMap<&str, &CaseCandidate> = HashMap::new();
    for candidate in candidates {
        let Some(first) = seen.insert(&candidate.sameness, candidate) else { continue };
        let [_, one] = &first.parts.head;
        let [_, two] = &candidate.parts.head;
        let varying: Vec<String> =
            candidate.parts.axes.iter().map(|(axis, _, value)| format!(" {axis} = {value}")).collect();
        let at = if varying.is_empty() { String::new() } else { format!(" at{}", varying.join(",")) };
        let message = format!("workloads `{one}` and `{two}` produce the same case{at}");
        problems.add(
            Problem::at(&candidate.place, message)
                .also(&first.place, "the other one")
                .help("remove one, or remove the shared values from one"),
        );
    }
}
