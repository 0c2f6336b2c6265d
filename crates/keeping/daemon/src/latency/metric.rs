//! A metric that a server of metrics answers with, over time.

use std::{collections::VecDeque, net::SocketAddr, time::Duration};

use layout::{Selector, http_address};

use crate::latency::{
    Answer, Error,
    exposition::{Metric, between, metric, p99},
    http,
    wait::Wait,
};

/// A metric, with what its histogram had within the span.
#[derive(Debug)]
pub(crate) struct Scraped {
    address: SocketAddr,
    path: String,
    selector: Selector,
    per_second: f64,
    span: Duration,
    before: VecDeque<(Duration, Vec<(f64, f64)>)>,
}

impl Scraped {
    /// Nothing is read yet. `per_second`: how many of its units are a second.
    ///
    /// # Errors
    /// In words: it is no address.
    pub fn new(url: &str, selector: &Selector, per_second: f64, span: Duration) -> Result<Scraped, Error> {
        let (address, path) = http_address(url).ok_or_else(|| Error::Says(format!("{url} is no address")))?;
        let (path, selector) = (path.to_owned(), selector.clone());
        Ok(Scraped { address, path, selector, per_second, span, before: VecDeque::new() })
    }

    /// Of a histogram, the requests since the answer of the span before count: the first answer says nothing.
    pub fn look(&mut self, now: Duration, target: f64, wait: &Wait<'_>) -> Result<Answer, Error> {
        let text = http::get(self.address, &self.path, wait)?;
        let said = metric(&text, &self.selector, wait)?;
        let p99 = match said {
            Metric::Value(value) => value,
            Metric::Histogram(buckets) => {
                let largest = buckets.iter().rev().map(|(bound, _)| *bound).find(|bound| bound.is_finite());
                if largest.is_none_or(|largest| largest / self.per_second < target) {
                    let largest = largest.unwrap_or_default() / self.per_second;
                    let what =
                        format!("the largest bound of {} is {largest} s, below the target", self.selector);
                    return Err(Error::Says(what));
                }
                self.since(now, buckets)
            }
        };
        Ok(p99.map_or(Answer::Nothing, |value| Answer::P99(value / self.per_second)))
    }

    /// The percentile of the requests within the span.
    fn since(&mut self, now: Duration, buckets: Vec<(f64, f64)>) -> Option<f64> {
        // the newest one that is as old as the span is the one to compare with
        while self.before.get(1).is_some_and(|(at, _)| now.saturating_sub(*at) >= self.span) {
            self.before.pop_front();
        }
        let new = self.before.front().map(|(_, before)| between(before, &buckets));
        if new == Some(None) {
            self.before.clear();
        }
        self.before.push_back((now, buckets));
        p99(&new??)
    }
}
