//! Flags for the engines of `pgstrata submit`, made from the list of engines, so that each brings its own.

use crate::error::{Error, Result};
use crate::submit::{ALL, Engine};
use clap::error::ErrorKind;
use clap::parser::ValueSource;
use clap::{Arg, ArgAction, ArgGroup, ArgMatches, Command, FromArgMatches};
use std::collections::BTreeMap;

/// Values of the engines' flags.
#[derive(Debug, Default)]
pub struct EngineArgs {
    engine: Option<&'static Engine>,
    options: BTreeMap<String, String>,
}

impl EngineArgs {
    /// The chosen engine, with the values of its flags.
    ///
    /// # Errors
    /// If none is chosen, or one lacks a flag.
    pub fn chosen(&self) -> Result<(&'static Engine, BTreeMap<String, String>)> {
        let engine = self.engine.ok_or_else(|| {
            let names: Vec<String> = ALL.iter().map(|engine| flag(engine)).collect();
            Error::user("no engine is named").hint(format!("one of {}", names.join(", ")))
        })?;
        let mut required = engine.flags.iter().filter(|flag| flag.required);
        if let Some(wanted) = required.find(|flag| !self.options.contains_key(flag.name)) {
            return Err(Error::user(format!("--{} needs --{} {}", engine.name, wanted.name, wanted.value))
                .hint(wanted.doc.to_owned()));
        }
        let mut options = self.options.clone();
        for flag in engine.flags {
            if let Some(default) = flag.default {
                options.entry(flag.name.to_owned()).or_insert_with(|| default.to_owned());
            }
        }
        Ok((engine, options))
    }

    /// The engine, if one is named, with only the values given.
    pub fn given(&self) -> Option<(&'static Engine, &BTreeMap<String, String>)> {
        Some((self.engine?, &self.options))
    }
}

fn is_given(matches: &ArgMatches, name: &str) -> bool {
    matches.value_source(name) == Some(ValueSource::CommandLine)
}

fn flag(engine: &Engine) -> String {
    let value = engine.value.map(|value| format!(" {value}")).unwrap_or_default();
    format!("--{}{value}", engine.name)
}

impl FromArgMatches for EngineArgs {
    fn from_arg_matches(matches: &ArgMatches) -> Result<EngineArgs, clap::Error> {
        // clap's own `requires` treats the default of a flag without a value as present.
        for other in ALL.iter().filter(|engine| !is_given(matches, engine.name)) {
            if let Some(flag) = other.flags.iter().find(|flag| is_given(matches, flag.name)) {
                let message = format!("--{} is for --{}\n", flag.name, other.name);
                return Err(clap::Error::raw(ErrorKind::MissingRequiredArgument, message));
            }
        }
        let Some(engine) = ALL.iter().copied().find(|engine| is_given(matches, engine.name)) else {
            return Ok(EngineArgs::default());
        };
        let names = engine.value.map(|_| engine.name).into_iter().chain(engine.flags.iter().map(|flag| flag.name));
        let names = names.filter(|name| is_given(matches, name));
        let options = names.filter_map(|name| Some((name.to_owned(), matches.get_one::<String>(name)?.clone())));
        Ok(EngineArgs { engine: Some(engine), options: options.collect() })
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        *self = EngineArgs::from_arg_matches(matches)?;
        Ok(())
    }
}

impl clap::Args for EngineArgs {
    fn augment_args(command: Command) -> Command {
        let group = ArgGroup::new("engine").args(ALL.iter().map(|engine| engine.name));
        ALL.iter().copied().fold(command, augmented).group(group)
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

fn augmented(command: Command, engine: &'static Engine) -> Command {
    let choice = Arg::new(engine.name).long(engine.name).help(engine.doc);
    let choice = match engine.value {
        Some(value) => choice.value_name(value),
        None => choice.action(ArgAction::SetTrue),
    };
    engine.flags.iter().fold(command.arg(choice), |command, flag| {
        let arg = Arg::new(flag.name).long(flag.name).value_name(flag.value).help(flag.doc);
        command.arg(match flag.default {
            Some(default) => arg.default_value(default),
            None => arg,
        })
    })
}
