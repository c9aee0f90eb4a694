import Foundation
import Synchronization
public import Testing

/// Lets only a few of the test cases that it is given to run at once.
///
/// Swift Testing starts all cases of all tests together. Thousands of cases, each with a store of its own, would hold more
/// files open than a process may, gigabytes of memory, and each would take as long as all together.
public struct LimitedParallelism: SuiteTrait, TestTrait, TestScoping {
  private static let turns = Turns(count: max(8, 2 * ProcessInfo.processInfo.activeProcessorCount))

  /// Whether it holds for all tests of a suite.
  public var isRecursive: Bool { true }

  /// Runs a case when it is its turn.
  public func provideScope(
    for test: Test, testCase: Test.Case?, performing function: @concurrent @Sendable () async throws -> Void
  ) async throws {
    guard testCase != nil else { return try await function() }
    await LimitedParallelism.turns.take()
    defer { LimitedParallelism.turns.end() }
    try await function()
  }
}

extension Trait where Self == LimitedParallelism {
  /// Only a few test cases at once, of all that have this trait.
  public static var limitedParallelism: Self { Self() }
}

/// How many may go on at once, and who waits.
private final class Turns: Sendable {
  private struct State {
    var free: Int
    var waiting: [CheckedContinuation<Void, Never>] = []
  }

  private let state: Mutex<State>

  init(count: Int) {
    state = Mutex(State(free: count))
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
