//! Plans embedded in the program: a file each in `plans/`, a page each in `docs/plans/`.
//!
//! To add one, add these two files; `build.rs` makes the index.

/// All plans: name without extension, text, page; sorted.
const FILES: &[(&str, &str, &str)] = include!(concat!(env!("OUT_DIR"), "/plans.rs"));

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Shipped {
    pub name: &'static str,
    pub text: &'static str,
    /// Markdown: question, cases, duration, how to read the report.
    pub page: &'static str,
}

impl Shipped {
    /// The question that it answers: the first sentence of its leading comment.
    pub fn question(&self) -> String {
        let lines = self.text.lines().map_while(|line| line.strip_prefix('#')).map(str::trim);
        let comment = lines.take_while(|line| !line.is_empty()).collect::<Vec<_>>().join(" ");
        let end = comment.find("? ").map_or(comment.len(), |at| at + 1);
        comment[..end].to_owned()
    }
}

/// All plans, by name.
pub fn all() -> impl Iterator<Item = Shipped> {
    FILES.iter().map(|(name, text, page)| Shipped { name, text, page })
}

pub fn find(name: &str) -> Option<Shipped> {
    all().find(|plan| plan.name == name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_shipped_plan_asks_a_question_documented_on_its_page() {
        for plan in all() {
            assert!(plan.question().ends_with('?'), "{}: {}", plan.name, plan.question());
            for part in ["**Question.**", "**Cases.**", "**Needs.**", "**What to read.**"] {
                assert!(plan.page.contains(part), "{}: {part}", plan.name);
            }
            // Published results and how this compares, or a statement that there are none.
            assert!(
                ["**What is published.**", "**Published.**"].iter().any(|part| plan.page.contains(part)),
                "{}",
                plan.name
            );
        }
    }

    #[test]
    fn each_page_says_how_long_both_runs_take() {
        for plan in all() {
            for command in
                [format!("    pgstrata run {} ", plan.name), format!("    pgstrata run {} --quick ", plan.name)]
            {
                let line = plan.page.lines().find(|line| line.starts_with(&command) && line.contains(" # "));
                let says = |line: &str| line.contains(|c: char| c.is_ascii_digit()) || line.contains("`pgstrata plan ");
                assert!(line.is_some_and(says), "{}: {command}", plan.name);
            }
        }
    }
}
