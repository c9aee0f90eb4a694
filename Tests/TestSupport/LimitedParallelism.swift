import Foundation
import Larder
public import Testing

/// Limits the number of test cases that run at the same time.
///
/// Swift Testing starts all cases of all tests together. Thousands of cases, each with its own store, would exceed the
/// process's limit of open files, use gigabytes of memory, and each take as long as all of them together.
public struct LimitedParallelism: SuiteTrait, TestTrait, TestScoping {
  private static let turns = Turns(count: max(8, 2 * ProcessInfo.processInfo.activeProcessorCount))

  /// A Boolean value that indicates whether the trait applies to all tests of a suite.
  public var isRecursive: Bool { true }

  /// Runs a case once it is its turn.
  public func provideScope(
    for test: Test, testCase: Test.Case?, performing function: @concurrent @Sendable () async throws -> Void
  ) async throws {
    guard testCase != nil else { return try await function() }
    await LimitedParallelism.turns.take()
    let start = ContinuousClock.now
    defer {
      // The name of the test without its place in the source code.
      let name = String(describing: test.id).split(separator: "/").prefix(2).joined(separator: "/")
      TurnDurations.add(ContinuousClock.now - start, to: name)
      LimitedParallelism.turns.end()
    }
    try await function()
  }
}

extension Trait where Self == LimitedParallelism {
  /// Limits the number of concurrent test cases, among all with this trait.
  public static var limitedParallelism: Self { Self() }
}

/// The number of cases that may run at the same time, and the wait queue.
private final class Turns: Sendable {
  private struct State {
    var free: Int
    var waiting: [CheckedContinuation<Void, Never>] = []
  }

  private let state: Locked<State>

  init(count: Int) {
    state = Locked(State(free: count))
  }

  func take() async {
    await withCheckedContinuation { continuation in
      let isFree = state.withLock { state in
        guard state.free == 0 else {
          state.free -= 1
          return true
        }
        state.waiting.append(continuation)
        return false
      }
      if isFree { continuation.resume() }
    }
  }

  func end() {
    let next = state.withLock { state -> CheckedContinuation<Void, Never>? in
      guard let next = state.waiting.popLast() else {
        state.free += 1
        return nil
      }
      return next
    }
    next?.resume()
  }
}

/// The total time of the cases of each test, without the time that they waited for their turn, which `Scripts/run-tests`
/// reads when the process has exited.
private enum TurnDurations {
  private static let durations: Locked<[String: Duration]> = {
    atexit { TurnDurations.print() }
    return Locked([:])
  }()

  static func add(_ duration: Duration, to test: String) {
    durations.withLock { $0[test, default: .zero] += duration }
  }

  private static func print() {
    for (test, duration) in durations.withLock({ $0 }) { Swift.print("Test \(test) took \(duration / .seconds(1)) s") }
  }
}
