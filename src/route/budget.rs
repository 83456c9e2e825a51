//! Daily budget per caller. No I/O: the caller passes in the current day.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::config::router::Budget;
use crate::locked::locked;
use crate::providers::chat::Usage;

/// Spending of each caller today, and the limits. Kept in memory only, so a restart resets it.
#[derive(Debug)]
pub struct Budgets {
    settings: Budget,
    spent: Mutex<Spent>,
}

#[derive(Debug, Default)]
struct Spent {
    /// Days since 1970, UTC.
    day: u64,
    by_caller: HashMap<Arc<str>, Amount>,
}

#[derive(Debug, Clone, Copy, Default)]
struct Amount {
    tokens: u64,
    cost: f64,
}

/// The current day and the time until it ends.
#[derive(Debug, Clone, Copy)]
pub struct Today {
    pub day: u64,
    /// Time until the next day begins.
    pub left: Duration,
}

/// The budget that is exhausted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UsedUp {
    Tokens,
    Cost,
}

/// Bounds the map. Callers beyond this number share one budget.
const MOST_CALLERS: usize = 10_000;
const REST: &str = "";
const DAY: u64 = 24 * 60 * 60;

impl Budgets {
    pub fn new(settings: Budget) -> Budgets {
        Budgets { settings, spent: Mutex::default() }
    }

    /// Whether a caller may send a request. The last response may exceed the budget, because its cost is unknown in
    /// advance.
    pub fn check(&self, caller: &str, today: Today) -> Result<(), UsedUp> {
        let spent = locked(&self.spent);
        let amounts = &spent.by_caller;
        let amount = amounts.get(caller).or_else(|| amounts.get(REST).filter(|_| amounts.len() > MOST_CALLERS));
        let amount = amount.copied().filter(|_| spent.day == today.day).unwrap_or_default();
        match self.settings {
            Budget { tokens_per_day: Some(most), .. } if amount.tokens >= most => Err(UsedUp::Tokens),
            Budget { cost_per_day: Some(most), .. } if amount.cost >= most => Err(UsedUp::Cost),
            _ => Ok(()),
        }
    }

    /// Adds the tokens and the cost of a response.
    pub fn spend(&self, caller: &Arc<str>, usage: Usage, cost: Option<f64>, today: Today) {
        if self.settings == Budget::default() {
            return;
        }
        let mut spent = locked(&self.spent);
        if spent.day != today.day {
            *spent = Spent { day: today.day, by_caller: HashMap::new() };
        }
        let known = spent.by_caller.contains_key(caller) || spent.by_caller.len() < MOST_CALLERS;
        let caller = if known { caller.clone() } else { REST.into() };
        let amount = spent.by_caller.entry(caller).or_default();
        amount.tokens = amount.tokens.saturating_add(usage.total());
        amount.cost += cost.unwrap_or_default();
    }
}

impl Today {
    /// From seconds since the Unix epoch.
    pub fn at(seconds: u64) -> Today {
        Today { day: seconds / DAY, left: Duration::from_secs(DAY - seconds % DAY) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn budgets(tokens: Option<u64>, cost: Option<f64>) -> Budgets {
        Budgets::new(Budget { tokens_per_day: tokens, cost_per_day: cost })
    }

    fn used(tokens: u64) -> Usage {
        Usage { prompt: tokens, ..Usage::default() }
    }

    #[test]
    fn a_caller_may_spend_until_the_budget_is_used_up_and_others_on_their_own() {
        let (budgets, today) = (budgets(Some(100), None), Today::at(1_800_000_000));
        let (ada, bob): (Arc<str>, Arc<str>) = ("ada".into(), "bob".into());
        budgets.spend(&ada, used(99), None, today);
        assert_eq!(budgets.check(&ada, today), Ok(()));
        budgets.spend(&ada, used(50), None, today);
        assert_eq!(budgets.check(&ada, today), Err(UsedUp::Tokens));
        assert_eq!(budgets.check(&bob, today), Ok(()));
    }

    #[test]
    fn cost_counts_where_there_are_prices() {
        let (budgets, today) = (budgets(None, Some(1.0)), Today::at(0));
        let ada: Arc<str> = "ada".into();
        budgets.spend(&ada, used(1_000_000), None, today);
        assert_eq!(budgets.check(&ada, today), Ok(()));
        budgets.spend(&ada, used(1), Some(1.5), today);
        assert_eq!(budgets.check(&ada, today), Err(UsedUp::Cost));
    }

    #[test]
    fn a_new_day_is_a_new_budget() {
        let budgets = budgets(Some(10), None);
        let ada: Arc<str> = "ada".into();
        budgets.spend(&ada, used(10), None, Today::at(DAY - 1));
        assert!(budgets.check(&ada, Today::at(DAY - 1)).is_err());
        assert_eq!(Today::at(DAY - 1).left, Duration::from_secs(1));
        assert!(budgets.check(&ada, Today::at(DAY)).is_ok());
    }

    #[test]
    fn callers_without_number_share_one_budget_in_the_end() {
        let (budgets, today) = (budgets(Some(10), None), Today::at(0));
        for number in 0..=MOST_CALLERS {
            budgets.spend(&number.to_string().into(), used(10), None, today);
        }
        assert_eq!(locked(&budgets.spent).by_caller.len(), MOST_CALLERS + 1);
        assert!(budgets.check("somebody new", today).is_err());
    }
}
