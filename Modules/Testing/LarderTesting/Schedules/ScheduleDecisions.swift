/// The order of all work of one run of a ``ScheduledTrial``, which repeats the run.
///
/// It has a seed, from which the run makes everything else that is random, and the decisions that differ from the plain order:
/// the work that is ready first runs first, and nothing runs in the middle of other work. Its text is in a failure:
///
/// ```swift
/// try await trial.replay(Schedule("17 4=1 9=2")!)
/// ```
public struct Schedule: Sendable, Hashable, CustomStringConvertible {
  /// The seed of everything in the run that is random.
  public var seed: UInt64

  /// The decisions that differ from the plain order, by their number in the run.
  public var decisions: [Int: Int]

  /// Creates a schedule.
  ///
  /// - Parameters:
  ///   - seed: The seed of everything in the run that is random.
  ///   - decisions: The decisions that differ from the plain order, by their number in the run. Defaults to
  ///     an empty dictionary.
  public init(seed: UInt64, decisions: [Int: Int] = [:]) {
    self.seed = seed
    self.decisions = decisions
  }

  /// Creates a schedule from its text, or returns `nil` if the text is not a schedule.
  ///
  /// - Parameter text: The seed, and decisions such as `9=2`, separated by spaces.
  public init?(_ text: String) {
    let parts = text.split(separator: " ")
    guard let first = parts.first, let seed = UInt64(first) else { return nil }
    self.init(seed: seed)
    for part in parts.dropFirst() {
      let numbers = part.split(separator: "=", omittingEmptySubsequences: false).map { Int($0) }
      guard numbers.count == 2, let number = numbers[0], let value = numbers[1] else { return nil }
      decisions[number] = value
    }
  }

  /// The text of the schedule.
  public var description: String {
    ([String(seed)] + decisions.sorted { $0.key < $1.key }.map { "\($0.key)=\($0.value)" }).joined(separator: " ")
  }
}

/// The way the runs of a ``ScheduledTrial`` choose among orders.
public enum ScheduleStrategy: Sendable, Hashable {
  /// Any work that is ready runs next, and other work runs in the middle of it now and then.
  case random

  /// Each task gets a random priority, and the ready one with the highest runs, until it is moved behind all others at some
  /// random moments.
  ///
  /// This often finds a fault that needs an order of `changes + 1` events. The idea is from Burckhardt, Kothari, Musuvathi,
  /// Nagarakatte, "A Randomized Scheduler with Probabilistic Guarantees of Finding Bugs", ASPLOS 2010, whose guarantee does not
  /// hold here, because the length of a run is unknown.
  case priorities(changes: Int)

  /// The work that is ready first runs, except at a few random moments.
  case preemptions(Int)

  /// The strategy of a run that no strategy was chosen for, which alternates between those above.
  static func alternating(_ number: UInt64) -> ScheduleStrategy {
    switch number % 4 {
    case 0: .preemptions(1 + Int(number / 4 % 3))
    case 1: .priorities(changes: 1 + Int(number / 4 % 4))
    default: .random
    }
  }
}

/// The decisions of one run: those of a strategy, or those of a schedule.
struct ScheduleDecisions {
  private enum Source {
    case strategy(ScheduleStrategy)
    case schedule([Int: Int])
  }

  /// The estimated number of decisions in a run, among which the moments of a strategy are spread.
  private static let estimatedCount = 400

  private let source: Source
  private var generator: SeededGenerator
  /// The number of decisions that were made.
  private(set) var count = 0
  /// Those that differ from the plain order.
  private(set) var deviations: [Int: Int] = [:]
  /// The numbers of the decisions at which a strategy with few changes makes one.
  private var moments: Set<Int> = []
  private var priorities: [Int: Int] = [:]
  private var lowestPriority = 0

  init(strategy: ScheduleStrategy, seed: UInt64) {
    source = .strategy(strategy)
    generator = SeededGenerator(seed: seed, purpose: "schedule")
    let momentCount =
      switch strategy {
      case .random: 0
      case .priorities(let changes): changes
      case .preemptions(let count): count
      }
    // Most moments are early, because the length of a run is unknown, and is often short.
    for _ in 0..<momentCount {
      let range = max(2, Self.estimatedCount >> Int.random(in: 0..<5, using: &generator))
      moments.insert(Int.random(in: 0..<range, using: &generator))
    }
  }

  init(repeating schedule: Schedule) {
    source = .schedule(schedule.decisions)
    generator = SeededGenerator(seed: schedule.seed, purpose: "schedule")
  }

  /// Chooses the work that runs next.
  ///
  /// - Parameter tasks: The numbers of the tasks that are ready, at least one, in the order they became ready.
  /// - Returns: The index of the one that runs.
  mutating func choose(among tasks: [Int]) -> Int {
    decide { decisions in
      switch decisions.source {
      case .schedule(let recorded): min(recorded[decisions.count] ?? 0, tasks.count - 1)
      case .strategy(.random): Int.random(in: 0..<tasks.count, using: &decisions.generator)
      case .strategy(.priorities): decisions.indexOfHighestPriority(among: tasks)
      case .strategy(.preemptions):
        decisions.moments.contains(decisions.count) ? Int.random(in: 0..<tasks.count, using: &decisions.generator) : 0
      }
    }
  }

  /// Returns the number of pieces of other work that run in the middle of one.
  mutating func interruption() -> Int {
    decide { decisions in
      switch decisions.source {
      case .schedule(let recorded): recorded[decisions.count] ?? 0
      case .strategy(.random):
        Int.random(in: 0..<16, using: &decisions.generator) == 0
          ? Int.random(in: 1...12, using: &decisions.generator) : 0
      case .strategy(.priorities), .strategy(.preemptions):
        decisions.moments.contains(decisions.count) ? Int.random(in: 1...24, using: &decisions.generator) : 0
      }
    }
  }

  /// Chooses whether an accident happens now, such as the cancellation of a task, and to which of several targets.
  ///
  /// - Parameter count: The number of targets.
  /// - Returns: The index of the target, or `nil` for no accident.
  mutating func accident(among count: Int) -> Int? {
    guard count > 0 else { return nil }
    let choice = decide { decisions in
      switch decisions.source {
      case .schedule(let recorded): recorded[decisions.count] ?? 0
      case .strategy:
        Int.random(in: 0..<64, using: &decisions.generator) == 0
          ? Int.random(in: 1...count, using: &decisions.generator) : 0
      }
    }
    return (1...count).contains(choice) ? choice - 1 : nil
  }

  private mutating func decide(_ make: (inout ScheduleDecisions) -> Int) -> Int {
    let choice = make(&self)
    if choice != 0 { deviations[count] = choice }
    count += 1
    return choice
  }

  private mutating func indexOfHighestPriority(among tasks: [Int]) -> Int {
    for task in tasks where priorities[task] == nil {
      priorities[task] = Int.random(in: 0..<1 << 30, using: &generator)
    }
    func highest() -> Int {
      tasks.indices.max { (priorities[tasks[$0]] ?? 0, -$0) < (priorities[tasks[$1]] ?? 0, -$1) } ?? 0
    }
    if moments.contains(count) {
      lowestPriority -= 1
      priorities[tasks[highest()]] = lowestPriority
    }
    return highest()
  }
}
