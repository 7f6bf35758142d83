//! The executor beside tokio's paused clock, on the same loop in one run, so that the ratio can be read.
//!
//! Every worker sleeps 1 to 8 s of virtual time and then sends, which is one more, shorter sleep. Both clocks have to
//! end at the same instant. Sizes are workers; an element is an event (a sleep that ends).

#[path = "support/size.rs"]
mod size;

use criterion::{BenchmarkId, Criterion, Throughput};
use floodlab::executor::{Executor, Nothing};
use floodlab::rng::{draw, key};
use floodlab::{Duration, Time};
use size::size;

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    let mut group = criterion.benchmark_group("executor");
    group.sample_size(10);
    for (workers, rounds) in size([(1_000, 100), (100_000, 5)], [(10, 2), (100, 2)]) {
        let load = Load { key: key(1, "bench"), workers, rounds };
        let end = load.end();
        group.throughput(Throughput::Elements(2 * workers * rounds));
        group.bench_function(BenchmarkId::new("floodlab", workers), |bencher| {
            bencher.iter(|| assert_eq!(on_floodlab(load), end, "every event happened"));
        });
        group.bench_function(BenchmarkId::new("tokio-paused", workers), |bencher| {
            bencher.iter(|| assert_eq!(on_tokio(load), end, "every event happened"));
        });
    }
    group.finish();
    criterion.final_summary();
}

/// What there is to do: a pure function, so that both do the same.
#[derive(Clone, Copy)]
struct Load {
    key: u64,
    workers: u64,
    rounds: u64,
}

impl Load {
    /// The two sleeps of one round, in whole milliseconds, which is as fine as tokio's timers are.
    const fn sleeps_ms(&self, worker: u64, round: u64) -> [u64; 2] {
        let draw = draw(self.key, worker, round);
        [1_000 + draw % 7_000, 50 + (draw >> 32) % 100]
    }

    /// When the last worker is done.
    fn end(&self) -> Duration {
        let end_ms = |worker| (0..self.rounds).flat_map(|round| self.sleeps_ms(worker, round)).sum();
        Duration::from_millis((0..self.workers).map(end_ms).max().unwrap_or(0))
    }
}

fn on_floodlab(load: Load) -> Duration {
    let mut executor = Executor::default();
    for worker in 0..load.workers {
        let handle = executor.handle().clone();
        executor.handle().spawn(String::new(), async move {
            for round in 0..load.rounds {
                for ms in load.sleeps_ms(worker, round) {
                    handle.sleep(Duration::from_millis(ms)).await;
                }
            }
        });
    }
    executor.run(&Nothing, Time::MAX).expect("sleeps end");
    executor.handle().now().saturating_since(Time::ZERO)
}

#[expect(clippy::disallowed_methods, reason = "tokio is what is measured")]
fn on_tokio(load: Load) -> Duration {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().start_paused(true).build().expect("the system gives a runtime");
    let elapsed = runtime.block_on(async {
        let start = tokio::time::Instant::now();
        let workers: Vec<_> = (0..load.workers)
            .map(|worker| {
                tokio::spawn(async move {
                    for round in 0..load.rounds {
                        for ms in load.sleeps_ms(worker, round) {
                            tokio::time::sleep(std::time::Duration::from_millis(ms)).await;
                        }
                    }
                })
            })
            .collect();
        for worker in workers {
            worker.await.expect("sleeps end");
        }
        start.elapsed()
    });
    Duration::from_micros(elapsed.as_micros() as u64)
}
