//! `pgstrata man`: the manual pages of the program and of each subcommand.

use super::out;
use crate::error::{Context, Error, Result};
use std::path::PathBuf;

/// Write the manual pages, or print them
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  pgstrata man | man -l -                         read them now
  pgstrata man --out /usr/local/share/man/man1    install them")]
pub struct Args {
    /// Folder for the pages, made where it is missing; without it they are printed one after the other
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
}

/// Writes or prints the pages.
///
/// # Errors
/// When the folder or standard output cannot be written.
pub fn run(args: &Args) -> Result<u8> {
    let pages = pages()?;
    match &args.out {
        Some(folder) => {
            let place = folder.display();
            std::fs::create_dir_all(folder).or_host(|| format!("make the folder {place}"))?;
            for (name, page) in pages {
                let path = folder.join(name);
                std::fs::write(&path, page).or_host(|| format!("write {}", path.display()))?;
            }
        }
        None => pages.into_iter().try_for_each(|(_, page)| out::bytes(&page))?,
    }
    Ok(0)
}

/// File name and text of each page, the program's own first.
fn pages() -> Result<Vec<(String, Vec<u8>)>> {
    let mut command = super::command();
    command.build();
    let mut pages = Vec::new();
    for command in std::iter::once(&command).chain(command.get_subcommands()) {
        let page = clap_mangen::Man::new(command.clone());
        let mut text = Vec::new();
        page.render(&mut text).map_err(|error| Error::bug(error.to_string()).while_doing("write a manual page"))?;
        pages.push((page.get_filename(), text));
    }
    Ok(pages)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_subcommand_has_a_page_with_its_examples() {
        let pages = pages().unwrap();
        assert_eq!(pages[0].0, "pgstrata.1");
        assert_eq!(pages.len(), 1 + super::super::command().get_subcommands().count());
        for (name, text) in pages {
            let text = String::from_utf8(text).unwrap();
            assert!(name.starts_with("pgstrata") && name.ends_with(".1"), "{name}");
            assert!(text.contains("Examples:"), "{name}");
        }
    }
}
