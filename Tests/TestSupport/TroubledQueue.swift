package import Larder
package import LarderTesting

/// A queue whose calls a test disturbs before or after they reach the base.
package struct TroubledQueue<Base: DurableQueue>: ForwardingStore, DurableQueue {
  /// The closures that run before and after each call.
  package final class Trouble: Sendable {
    package typealias Disturb = @Sendable (StoreOperation) throws -> Void
    private let closures = Locked<(before: Disturb?, after: Disturb?)>((nil, nil))

    package func before(_ disturb: @escaping Disturb) { closures.withLock { $0.before = disturb } }
    package func after(_ disturb: @escaping Disturb) { closures.withLock { $0.after = disturb } }

    fileprivate func run(before operation: StoreOperation) throws {
      try closures.withLock { $0.before }?(operation)
    }

    fileprivate func run(after operation: StoreOperation) throws {
      try closures.withLock { $0.after }?(operation)
    }
  }

  package let base: Base
  package let trouble = Trouble()

  package init(_ base: Base) {
    self.base = base
  }

  package func forward<Result>(
    _ operation: StoreOperation, of key: StoreKey?, _ body: nonisolated(nonsending) () async throws -> Result
  ) async throws -> Result {
    try trouble.run(before: operation)
    let result = try await body()
    try trouble.run(after: operation)
    return result
  }
}

/// A closure that ignores its cancellation until the test ends it.
///
/// It sleeps by a clock that only the test advances.
package struct HungClosure: Sendable {
  private let clock = ManualClock()

  package init() {}

  /// Waits until the test ends all calls.
  package func run() async {
    let sleep = Task { [clock] in try await clock.sleep(for: .seconds(1)) }
    _ = await sleep.result
  }

  /// Waits until a number of calls wait.
  package func waitForCalls(_ count: Int) async throws { try await clock.waitForSleepers(count) }

  /// Ends all calls.
  package func end() { clock.advance(by: .seconds(1)) }
}

extension ManualClock {
  /// Advances the clock in steps until a condition holds, each time that enough tasks sleep.
  ///
  /// - Parameters:
  ///   - step: The duration of a step.
  ///   - sleepers: The number of tasks that sleep while nothing else can happen, so a busy machine skips no step of
  ///     theirs.
  ///   - condition: The condition.
  package func advance(by step: Duration, whileSleeping sleepers: Int, until condition: () async throws -> Bool)
    async rethrows
  {
    while try await !condition() {
      if sleeperCount >= sleepers { advance(by: step) } else { await Task.yield() }
    }
  }
}
