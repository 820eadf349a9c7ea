//! The rules of the house that no compiler and no linter knows: who may use whom, sizes, seams, columns, dead files,
//! licences.
//!
//! Reads the sources as text, and the columns as values. A rule that turns out to be wrong is changed here and in
//! `ARCHITECTURE.md`, with its reason.

mod circles;
mod columns;
mod doors;
mod licences;
mod links;
mod paths;
mod prose;
mod reach;
mod rooms;
mod seams;
mod sizes;
mod source;
