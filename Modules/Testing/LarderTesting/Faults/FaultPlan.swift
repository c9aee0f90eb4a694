public import Larder

/// What goes wrong with which operations of a ``FaultyStore``, by script and by chance.
///
/// ```swift
/// var plan = FaultPlan(seed: seed)
/// plan.schedule(.error(.full), on: .apply)                          // the next one
/// plan.schedule(.error(.ioFailed, .after), on: .update, number: 3)  // the third from now
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

  /// How many operations there have been.
  public private(set) var operationCount = 0

  /// Makes a plan in which nothing goes wrong.
  ///
  /// - Parameter seed: Decides everything that is left to chance; that of the process unless given.
  public init(seed: UInt64 = SeededGenerator.seedOfProcess) {
    generator = SeededGenerator(seed: seed)
  }

  /// Lets one operation go wrong.
  ///
  /// - Parameters:
  ///   - fault: What happens.
  ///   - operation: To which kind of operation; to any, the default, where it is `nil`.
  ///   - number: To which of these, counted from now; 1, the default, is the next.
  public mutating func schedule(_ fault: StoreFault, on operation: StoreOperation? = nil, number: Int = 1) {
    entries.append(Entry(fault: fault, operation: operation, occurrence: .countdown(number)))
  }

  /// Lets operations go wrong now and then, until ``clearFaults()``.
  ///
  /// - Parameters:
  ///   - fault: What happens.
  ///   - operation: To which kind of operation; to any, the default, where it is `nil`.
  ///   - probability: How likely it happens to each of these, from 0 to 1.
  public mutating func schedule(_ fault: StoreFault, on operation: StoreOperation? = nil, probability: Double) {
    entries.append(Entry(fault: fault, operation: operation, occurrence: .chance(probability)))
  }

  /// Takes back everything that was scheduled.
  public mutating func clearFaults() {
    entries = []
  }

  /// Counts an operation, and tells what happens to it, in the order in which it was scheduled.
  ///
  /// - Parameter operation: What is asked of the store.
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

  /// A random number of times to give way.
  ///
  /// - Parameter limit: The highest.
  mutating func yieldCount(upTo limit: Int) -> Int {
    Int.random(in: 0...max(0, limit), using: &generator)
  }
}
