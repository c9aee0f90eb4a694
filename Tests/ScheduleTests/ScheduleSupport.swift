import Larder
import LarderTesting
import TestSupport

/// Runs a closure in several child tasks, and waits for all of them.
///
/// - Parameters:
///   - count: The number of tasks.
///   - body: The closure. It receives the number of its task.
func concurrently(_ count: Int, _ body: @escaping @Sendable (_ task: Int) async throws -> Void) async throws {
  try await withThrowingTaskGroup(of: Void.self) { group in
    for task in 0..<count {
      group.addTask { try await body(task) }
    }
    try await group.waitForAll()
  }
}

extension ScheduledContext {
  /// Returns an empty store in memory that suspends in half of its operations.
  ///
  /// - Parameters:
  ///   - type: The type of the values. Defaults to bytes.
  ///   - number: A number by which several stores differ. Defaults to 0.
  func slowStore<Value>(of type: Value.Type = [UInt8].self, number: UInt64 = 0) -> FaultyStore<MemoryStore<Value>> {
    var plan = FaultPlan(seed: seed &+ number)
    plan.schedule(.yields(upTo: 2), probability: 0.5)
    return MemoryStore<Value>().faulty(plan: plan, clock: clock)
  }

  /// Suspends the task a few times.
  func pause(upTo count: Int, _ generator: inout SeededGenerator) async {
    for _ in 0..<Int.random(in: 0...count, using: &generator) { await Task.yield() }
  }
}

extension FaultyStore {
  /// Schedules errors before and after all operations but the closing.
  func fail(withProbability probability: Double) {
    let operations: [StoreOperation] = [.value, .values, .entries, .keys, .count, .apply, .update, .synchronize]
    for operation in operations {
      schedule(.error(.ioFailed), on: operation, probability: probability)
      schedule(.error(.ioFailed, .after), on: operation, probability: probability)
    }
  }
}

/// A value that tasks share.
final class Shared<Value: Sendable>: Sendable {
  private let locked: Locked<Value>

  init(_ value: Value) {
    locked = Locked(value)
  }

  var value: Value { locked.withLock { $0 } }

  @discardableResult
  func change<Result: Sendable>(_ body: @Sendable (inout Value) throws -> Result) rethrows -> Result {
    try locked.withLock { try body(&$0) }
  }
}

/// The operations of several tasks with their results, which one order of all operations must explain.
///
/// Histories of stores have a `HistoryTrial`. This is for other operations, such as those that a unique index refuses.
final class OperationLog<Operation: Sendable, Result: Sendable & Equatable>: Sendable {
  private struct Entry: Sendable {
    let operation: Operation
    let start: Int
    /// The result and its time, or `nil` if the outcome is unknown.
    var response: (result: Result, time: Int)?
  }

  private struct State: Sendable {
    var time = 0
    var entries: [Entry] = []

    mutating func tick() -> Int {
      time += 1
      return time
    }
  }

  private let state = Shared(State())

  /// Performs an operation, and records it.
  ///
  /// - Parameters:
  ///   - operation: The operation.
  ///   - body: A closure that performs it, and returns `nil` if its outcome is unknown.
  func perform(_ operation: Operation, _ body: () async throws -> Result?) async rethrows {
    let index = state.change { state in
      state.entries.append(Entry(operation: operation, start: state.tick()))
      return state.entries.count - 1
    }
    guard let result = try await body() else { return }
    state.change { $0.entries[index].response = (result, $0.tick()) }
  }

  /// Throws if no order explains the results.
  ///
  /// - Parameters:
  ///   - start: The state before the first operation.
  ///   - step: A closure that performs an operation on a state, and returns its result.
  func check<Model: Hashable>(from start: Model, _ step: (inout Model, Operation) -> Result) throws {
    let entries = state.value.entries
    var seen: Set<PartialOrder<Model>> = []
    var path = [PartialOrder(model: start)]
    while let configuration = path.popLast() {
      guard seen.insert(configuration).inserted else { continue }
      let rest = entries.indices.filter { !configuration.done.contains($0) }
      // An operation with an unknown outcome need not have happened.
      guard let end = rest.compactMap({ entries[$0].response?.time }).min() else { return }
      for index in rest where entries[index].start < end {
        var next = configuration
        next.done.insert(index)
        let result = step(&next.model, entries[index].operation)
        if let response = entries[index].response, response.result != result { continue }
        path.append(next)
      }
    }
    let lines = entries.map { entry in
      let end = entry.response.map { "\($0.time): \($0.result)" } ?? "?"
      return "\(entry.start)…\(end) of \(entry.operation)"
    }
    throw Wrong("no order explains \(lines.joined(separator: "; "))")
  }
}

/// The operations of an ``OperationLog`` that an order has so far, and the state after them.
private struct PartialOrder<Model: Hashable>: Hashable {
  var done: Set<Int> = []
  var model: Model
}
