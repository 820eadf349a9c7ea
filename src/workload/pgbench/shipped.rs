//! Scripts that ship with the program, each a mix of transactions with tables of its own.
//!
//! Their SQL is in `scripts/`; `docs/scripts.md` says what storage sees of each.

/// A shipped script.
#[derive(Debug, PartialEq, Eq)]
pub struct Shipped {
    /// Name in plans: `orders`.
    pub name: &'static str,
    /// Bytes of tables and indexes per unit of scale: by so much scale 100 enlarged an empty database on PostgreSQL 15
    /// and 18 with 8 kB pages. At scale 12 it is up to 8 % more.
    pub bytes_per_unit: u64,
    /// Makes and fills the tables for `:scale` units.
    pub setup: &'static str,
    pub transactions: &'static [Transaction],
}

#[derive(Debug, PartialEq, Eq)]
pub struct Transaction {
    /// Name of its measure.
    pub name: &'static str,
    pub sql: &'static str,
    /// Relative frequency, out of 100.
    pub weight: u32,
}

macro_rules! shipped {
    ($name:literal, $bytes_per_unit:literal, $(($transaction:literal, $weight:literal)),+) => {
        Shipped {
            name: $name,
            bytes_per_unit: $bytes_per_unit,
            setup: include_str!(concat!("scripts/", $name, "/setup.sql")),
            transactions: &[$(Transaction {
                name: $transaction,
                sql: include_str!(concat!("scripts/", $name, "/", $transaction, ".sql")),
                weight: $weight,
            }),+],
        }
    };
}

/// All of them, in the order of the manual.
pub static ALL: [Shipped; 4] = [
    shipped!(
        "orders",
        1_672_712,
        ("new_order", 44),
        ("payment", 43),
        ("order_status", 4),
        ("delivery", 4),
        ("stock_level", 5)
    ),
    shipped!("events", 1_090_343, ("append", 70), ("recent", 20), ("history", 10)),
    shipped!("queue", 1_104_843, ("push", 32), ("take", 32), ("finish", 32), ("look", 4)),
    shipped!("documents", 1_090_179, ("read", 85), ("replace", 10), ("rename", 5)),
];

/// The shipped script of this name.
pub fn named(name: &str) -> Option<&'static Shipped> {
    ALL.iter().find(|shipped| shipped.name == name)
}

/// Their names, for messages.
pub fn names() -> String {
    ALL.each_ref().map(|shipped| shipped.name).join(", ")
}
