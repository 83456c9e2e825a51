//! Daily budget per caller. No I/O: the caller passes in the current day.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use corbie_config::router::Budget;
use corbie_llm::chat::Usage;
use corbie_util::lock::lock;

/// Spending of each caller today, and the limits. Kept in memory only, so a restart resets it.
#[derive(Debug)]
pub struct Budgets {
    settings: Budget,
    spent: Mutex<DailySpending>,
}

#[derive(Debug, Default)]
struct DailySpending {
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
pub struct BudgetDay {
    pub day: u64,
    /// Time until the next day begins.
    pub remaining: Duration,
}

/// The budget that is exhausted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BudgetKind {
    Tokens,
    Cost,
}

/// Bounds the map. Callers beyond this number share one budget.
const MAX_CALLERS: usize = 10_000;
const OVERFLOW_CALLER: &str = "";
const SECONDS_PER_DAY: u64 = 24 * 60 * 60;

impl Budgets {
    pub fn new(settings: Budget) -> Budgets {
        Budgets { settings, spent: Mutex::default() }
    }

    /// Whether a caller may send a request. The last response may exceed the budget, because its cost is unknown in
    /// advance.
    pub fn check(&self, caller: &str, today: BudgetDay) -> Result<(), BudgetKind> {
        let spent = lock(&self.spent);
        let amounts = &spent.by_caller;
        let amount =
            amounts.get(caller).or_else(|| amounts.get(OVERFLOW_CALLER).filter(|_| amounts.len() > MAX_CALLERS));
        let amount = amount.copied().filter(|_| spent.day == today.day).unwrap_or_default();
        match self.settings {
            Budget { tokens_per_day: Some(most), .. } if amount.tokens >= most => Err(BudgetKind::Tokens),
            Budget { cost_per_day: Some(most), .. } if amount.cost >= most => Err(BudgetKind::Cost),
            _ => Ok(()),
        }
    }

    /// Adds the tokens and the cost of a response.
    pub fn spend(&self, caller: &Arc<str>, usage: Usage, cost: Option<f64>, today: BudgetDay) {
        if self.settings == Budget::default() {
            return;
        }
        let mut spent = lock(&self.spent);
        if spent.day != today.day {
            *spent = DailySpending { day: today.day, by_caller: HashMap::new() };
        }
        let known = spent.by_caller.contains_key(caller) || spent.by_caller.len() < MAX_CALLERS;
        let caller = if known { caller.clone() } else { OVERFLOW_CALLER.into() };
        let amount = spent.by_caller.entry(caller).or_default();
        amount.tokens = amount.tokens.saturating_add(usage.total());
        amount.cost += cost.unwrap_or_default();
    }
}

impl BudgetDay {
    /// From seconds since the Unix epoch.
    pub fn at(seconds: u64) -> BudgetDay {
        BudgetDay {
            day: seconds / SECONDS_PER_DAY,
            remaining: Duration::from_secs(SECONDS_PER_DAY - seconds % SECONDS_PER_DAY),
        }
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
        let (budgets, today) = (budgets(Some(100), None), BudgetDay::at(1_800_000_000));
        let (ada, bob): (Arc<str>, Arc<str>) = ("ada".into(), "bob".into());
        budgets.spend(&ada, used(99), None, today);
        assert_eq!(budgets.check(&ada, today), Ok(()));
        budgets.spend(&ada, used(50), None, today);
        assert_eq!(budgets.check(&ada, today), Err(BudgetKind::Tokens));
        assert_eq!(budgets.check(&bob, today), Ok(()));
    }

    #[test]
    fn cost_counts_where_there_are_prices() {
        let (budgets, today) = (budgets(None, Some(1.0)), BudgetDay::at(0));
        let ada: Arc<str> = "ada".into();
        budgets.spend(&ada, used(1_000_000), None, today);
        assert_eq!(budgets.check(&ada, today), Ok(()));
        budgets.spend(&ada, used(1), Some(1.5), today);
        assert_eq!(budgets.check(&ada, today), Err(BudgetKind::Cost));
    }

    #[test]
    fn a_new_day_is_a_new_budget() {
        let budgets = budgets(Some(10), None);
        let ada: Arc<str> = "ada".into();
        budgets.spend(&ada, used(10), None, BudgetDay::at(SECONDS_PER_DAY - 1));
        assert!(budgets.check(&ada, BudgetDay::at(SECONDS_PER_DAY - 1)).is_err());
        assert_eq!(BudgetDay::at(SECONDS_PER_DAY - 1).remaining, Duration::from_secs(1));
        assert!(budgets.check(&ada, BudgetDay::at(SECONDS_PER_DAY)).is_ok());
    }

    #[test]
    fn callers_without_number_share_one_budget_in_the_end() {
        let (budgets, today) = (budgets(Some(10), None), BudgetDay::at(0));
        for number in 0..=MAX_CALLERS {
            budgets.spend(&number.to_string().into(), used(10), None, today);
        }
        assert_eq!(lock(&budgets.spent).by_caller.len(), MAX_CALLERS + 1);
        assert!(budgets.check("somebody new", today).is_err());
    }
}
