public import Larder

/// The scripted and random faults of a ``FaultyStore``.
///
/// ```swift
/// var plan = FaultPlan(seed: seed)
/// plan.schedule(.error(.full), on: .apply)                          // the next apply
/// plan.schedule(.error(.ioFailed, .after), on: .update, number: 3)  // the third update from now
/// plan.schedule(.yields(upTo: 3), probability: 1)                   // every operation
/// ```
public struct FaultPlan: Sendable {
  private enum Occurrence: Sendable {
    case countdown(Int)
    case chance(Double)
  }

  private struct Entry: Sendable {
    let fault: StoreFault
    let operation: StoreOperation?
    var occurrence: Occurrence
  }

  private var generator: SeededGenerator
  private var entries: [Entry] = []

  /// The number of operations so far.
  public private(set) var operationCount = 0

  /// Creates a plan without faults.
  ///
  /// - Parameter seed: The seed of all random decisions. Defaults to ``SeededGenerator/seedOfProcess``.
  public init(seed: UInt64 = SeededGenerator.seedOfProcess) {
    generator = SeededGenerator(seed: seed)
  }

  /// Schedules a fault for one operation.
  ///
  /// ```swift
  /// var plan = FaultPlan()
  /// plan.schedule(.error(.full), on: .apply, number: 2)  // the second write fails
  /// ```
  ///
  /// - Parameters:
  ///   - fault: The fault.
  ///   - operation: The kind of operation to affect. Defaults to `nil`, meaning any.
  ///   - number: The position of the operation among those of its kind, counted from now. Defaults to 1, the next one.
  public mutating func schedule(_ fault: StoreFault, on operation: StoreOperation? = nil, number: Int = 1) {
    entries.append(Entry(fault: fault, operation: operation, occurrence: .countdown(number)))
  }

  /// Schedules a random fault for operations, until ``clearFaults()`` is called.
  ///
  /// - Parameters:
  ///   - fault: The fault.
  ///   - operation: The kind of operation to affect. Defaults to `nil`, meaning any.
  ///   - probability: The probability of the fault for each operation, from 0 to 1.
  public mutating func schedule(_ fault: StoreFault, on operation: StoreOperation? = nil, probability: Double) {
    entries.append(Entry(fault: fault, operation: operation, occurrence: .chance(probability)))
  }

  /// Removes all scheduled faults.
  public mutating func clearFaults() {
    entries = []
  }

  /// Counts an operation and returns its faults, in the order they were scheduled.
  ///
  /// - Parameter operation: The kind of operation.
  mutating func faults(of operation: StoreOperation) -> [StoreFault] {
    operationCount += 1
    var faults: [StoreFault] = []
    for index in entries.indices where entries[index].operation == nil || entries[index].operation == operation {
      switch entries[index].occurrence {
      case .countdown(let number):
        entries[index].occurrence = .countdown(number - 1)
        if number == 1 { faults.append(entries[index].fault) }
      case .chance(let probability):
        if Double.random(in: 0..<1, using: &generator) < probability { faults.append(entries[index].fault) }
      }
    }
    entries.removeAll { if case .countdown(let number) = $0.occurrence { number < 1 } else { false } }
    return faults
  }

  /// Returns a random number of yields.
  ///
  /// - Parameter limit: The maximum number.
  mutating func yieldCount(upTo limit: Int) -> Int {
    Int.random(in: 0...max(0, limit), using: &generator)
  }
}

/// A fault that a ``FaultyStore`` applies to an operation.
///
/// ```swift
/// store.schedule(.error(.ioFailed, .after), on: .apply)  // the write takes effect, and reports an error
/// ```
public enum StoreFault: Sendable, Hashable {
  /// The moment of a fault during an operation.
  public enum Moment: Sendable, Hashable {
    /// Before the base is called.
    case before
    /// After the base has returned, and before the caller gets the result.
    case after
  }

  /// The operation fails with a `StoreError`.
  ///
  /// If the operation fails before the base is called, nothing changes, and the outcome defaults to `nothingChanged`.
  /// If a write fails after the base was called, it has taken effect, and the outcome is always `unknown`. Closing
  /// closes the base in both cases.
  case error(StoreError.Code, Moment = .before, outcome: StoreError.Outcome = .nothingChanged)

  /// The operation is suspended until ``FaultyStore/resume(_:)`` is called or its task is cancelled.
  case suspension(Moment = .before)

  /// The operation is delayed by a duration, measured by the store's clock.
  case delay(Duration, Moment = .before)

  /// The operation yields to other tasks before and after the base is called, a random number of times up to a limit.
  case yields(upTo: Int)
}
