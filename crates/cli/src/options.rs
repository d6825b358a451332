//! Options of the domain on the command line: one for each row of the table, by the same name.

use clap::builder::{StyledStr, ValueParser};
use clap::{Arg, ArgAction, ArgMatches, Command};
use ringfence::{DomainOptions, OptionRow, OptionUnit};

/// What was said about the domain; the rest is the default.
#[derive(Clone, Debug, Default)]
pub struct Options(pub DomainOptions);

/// The name with dashes. There are a dozen, made once for a command line: they may stay.
fn long(row: &OptionRow) -> &'static str {
    row.name.replace('_', "-").leak()
}

fn number(row: &OptionRow, text: &str) -> Result<u64, String> {
    let number = row.unit.read(text)?;
    row.set(&mut DomainOptions::default(), number)
        .map_err(|e| e.to_string())?;
    Ok(number)
}

fn arg(row: &'static OptionRow) -> Arg {
    let mut help = row.summary.to_owned();
    if let Some(first) = help.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    let value = match row.unit {
        OptionUnit::Bytes => ", as 64M",
        OptionUnit::Time => ", as 500ms or 2s",
        _ => "",
    };
    help.push_str(value);
    if let OptionUnit::Choice(names) = row.unit {
        help.push_str(&format!(": {}", names.join(", ")));
    }
    match row.default() {
        Some(_) if row.unit == OptionUnit::Flag => {}
        Some(default) => help.push_str(&format!(" (default {})", row.unit.text(default))),
        None => help.push_str(" (no limit unless given)"),
    }
    let arg = Arg::new(row.name).long(long(row)).help(StyledStr::from(help));
    if row.unit == OptionUnit::Flag {
        return arg.action(ArgAction::SetTrue);
    }
    arg.value_name(match row.unit {
        OptionUnit::Bytes => "SIZE",
        OptionUnit::Time => "TIME",
        OptionUnit::Choice(_) => "NAME",
        _ => "N",
    })
    .value_parser(ValueParser::from(move |text: &str| number(row, text)))
}

impl clap::Args for Options {
    fn augment_args(command: Command) -> Command {
        let command = command.next_help_heading("The domain");
        DomainOptions::TABLE
            .iter()
            .fold(command, |command, row| command.arg(arg(row)))
    }

    fn augment_args_for_update(command: Command) -> Command {
        Self::augment_args(command)
    }
}

impl clap::FromArgMatches for Options {
    fn from_arg_matches(matches: &ArgMatches) -> Result<Self, clap::Error> {
        let mut options = Self::default();
        options.update_from_arg_matches(matches)?;
        Ok(options)
    }

    fn update_from_arg_matches(&mut self, matches: &ArgMatches) -> Result<(), clap::Error> {
        for row in DomainOptions::TABLE {
            let number = match row.unit {
                OptionUnit::Flag => matches.get_flag(row.name).then_some(1),
                _ => matches.get_one::<u64>(row.name).copied(),
            };
            if let Some(number) = number {
                row.set(&mut self.0, number)
                    .map_err(|e| clap::Error::raw(clap::error::ErrorKind::ValueValidation, e))?;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::{Args, FromArgMatches};

    fn parse(words: &str) -> Result<DomainOptions, clap::Error> {
        let command = Options::augment_args(Command::new("x"));
        let matches = command.try_get_matches_from(std::iter::once("x").chain(words.split_whitespace()))?;
        Options::from_arg_matches(&matches).map(|o| o.0)
    }

    #[test]
    fn every_row_is_an_option_by_its_own_name() {
        let default = parse("").expect("none is needed");
        for row in DomainOptions::TABLE {
            let words = match row.unit {
                OptionUnit::Flag => format!("--{}", long(row)),
                OptionUnit::Time => format!("--{} 7ms", long(row)),
                OptionUnit::Bytes => format!("--{} 128K", long(row)),
                OptionUnit::Choice(names) => format!("--{} {}", long(row), names[names.len() - 1]),
                _ => format!("--{} 7", long(row)),
            };
            let set = parse(&words).unwrap_or_else(|e| panic!("{words}: {e}"));
            assert_ne!(format!("{set:?}"), format!("{default:?}"), "{words} sets nothing");
        }
        assert!(parse("--data-stack 128K").is_ok_and(|o| o.data_stack == 128 << 10));
        assert!(
            parse("--time-limit 7ms")
                .is_ok_and(|o| o.time_limit == Some(std::time::Duration::from_millis(7)))
        );
    }

    #[test]
    fn what_is_out_of_range_is_told() {
        for (words, reason) in [
            ("--data-stack 1K", "whole pages, 64 KiB to 15 MiB"),
            ("--max-lanes 64", "1 to 63"),
            ("--memory-limit 1Q", "K, M or G"),
            ("--call-limit x", "write a number"),
            ("--backend x", "choose one of window, process, none"),
        ] {
            let told = parse(words).expect_err(words).to_string();
            assert!(told.contains(reason), "{told}");
        }
    }
}
