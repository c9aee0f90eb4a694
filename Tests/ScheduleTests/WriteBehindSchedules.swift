import Larder
import LarderBatching
import LarderTesting
import TestSupport
import Testing

/// Write-behind in many schedules, over a base that fails: what a flush has acknowledged is in the base, in order, and what is
/// given up is reported.
@Suite(.enabled(if: ScheduledTrial.isAvailable, "this runtime lets no program choose the order of its jobs"))
struct WriteBehindSchedules {
  /// A store in memory with errors that may pass, and a check of each commit.
  private struct Base: ForwardingStore {
    typealias Value = Int

    let base: FaultyStore<MemoryStore<Int>>
    /// The probability of a failed commit, while the base works.
    let errorProbability: Shared<Double>
    let code: StoreError.Code
    let areRetryable: Bool
    let generator: Shared<SeededGenerator>
    /// A closure that checks the entries before and after each commit.
    let check: @Sendable (_ old: [StoreKey: Int], _ new: [StoreKey: Int]) throws -> Void
    let problem = Shared<Wrong?>(nil)
    /// The entries after the last commit.
    let entries = Shared<[StoreKey: Int]>([:])

    init(
      _ context: ScheduledContext, errorProbability: Double, code: StoreError.Code = .ioFailed,
      areRetryable: Bool = true,
      check: @escaping @Sendable (_ old: [StoreKey: Int], _ new: [StoreKey: Int]) throws -> Void = { _, _ in }
    ) {
      base = context.slowStore(of: Int.self)
      self.errorProbability = Shared(errorProbability)
      (self.code, self.areRetryable) = (code, areRetryable)
      generator = Shared(context.generator("errors"))
      self.check = check
    }

    func forward<Result>(
      _ operation: StoreOperation, of key: StoreKey?, _ body: nonisolated(nonsending) () async throws -> Result
    ) async throws -> Result {
      guard operation == .apply || operation == .update else { return try await body() }
      let probability = errorProbability.value
      let (failsBefore, failsAfter) = generator.change { generator in
        (
          Double.random(in: 0..<1, using: &generator) < probability,
          // A retry repeats the commit. If it is split because the error may concern one change, it begins with older ones.
          code != .full && Double.random(in: 0..<1, using: &generator) < probability / 2
        )
      }
      func error(_ outcome: StoreError.Outcome) -> StoreError {
        StoreError(
          code, during: operation, store: "base", message: "a fault", isRetryable: areRetryable, outcome: outcome)
      }
      if failsBefore { throw error(.nothingChanged) }
      let result = try await body()
      // Without suspensions.
      let found = try base.base.entries(in: .all, limit: .max, order: .ascending)
      let entries = Dictionary(uniqueKeysWithValues: found.map { ($0.key, $0.value) })
      let old = self.entries.change { known in
        defer { known = entries }
        return known
      }
      do {
        try check(old, entries)
      } catch let wrong as Wrong {
        problem.change { $0 = wrong }
      }
      if failsAfter { throw error(.unknown) }
      return result
    }
  }

  /// The writes of one task, in order: it writes number after number, in turn to its keys.
  private struct Writes: Sendable {
    static let keyCount = 2
    /// The numbers that were accepted, and the one that is being written.
    var accepted = 0
    var begun = 0

    static func key(_ task: Int, _ number: Int) -> StoreKey { StoreKey("\(task)/\(number % keyCount)") }

    /// Returns the entries of a task after its first writes.
    static func entries(_ task: Int, after count: Int) -> [StoreKey: Int] {
      Dictionary((1..<count + 1).map { (key(task, $0), $0) }, uniquingKeysWith: { $1 })
    }
  }

  private static func write(
    _ task: Int, _ count: Int, to store: WriteBehindStore<Base>, _ writes: Shared<[Writes]>,
    _ context: ScheduledContext
  ) async throws {
    var generator = context.generator("writer \(task)")
    for number in 1...count {
      await context.pause(upTo: 2, &generator)
      writes.change { $0[task].begun = number }
      try await store.setValue(number, forKey: Writes.key(task, number))
      writes.change { $0[task].accepted = number }
    }
  }

  /// The codes of errors that concern all changes of a commit, and that may concern one of them.
  private static let codes: [StoreError.Code] = [.ioFailed, .full]

  /// Errors that pass: no commit takes a key back, a flush has all that was accepted before it, and closing has everything.
  ///
  /// If the errors concern all changes, each commit also has the first writes of each task, without a gap.
  @Test(arguments: codes.indices) func `a flush has what was accepted`(_ index: Int) async throws {
    let code = Self.codes[index]
    try await runSchedules("write-behind over errors that pass, \(code.rawValue)") { context in
      let writes = Shared([Writes](repeating: Writes(), count: 3))
      let base = Base(context, errorProbability: 0.3, code: code) { old, new in
        for (key, number) in old where new[key] ?? 0 < number { throw Wrong("\(key) was taken back from \(number)") }
        for (task, writes) in writes.value.enumerated() {
          let own = new.filter { $0.key.hasPrefix(StoreKey("\(task)/")) }
          let last = own.values.max() ?? 0
          guard code == .full || own == Writes.entries(task, after: last), last <= writes.begun else {
            throw Wrong("task \(task) has \(own) in the base after \(writes)")
          }
        }
      }
      // After the last retry, batches are isolated, and one whose commit had landed would be taken back for a moment.
      let retries = WriteBehindRetryPolicy(readRetries: .max)
      let store = base.writeBehind(
        bounds: BatchBounds(changes: 6), maximumAge: .milliseconds(5), retries: retries, clock: context.clock)
      try await concurrently(4) { task in
        if task < 3 { return try await Self.write(task, 5, to: store, writes, context) }
        for _ in 0..<4 {
          await Task.yield()
          let accepted = writes.value.map(\.accepted)
          try await store.flush()
          try Self.check(base.entries.value, has: accepted)
        }
      }
      try await store.close()
      if let problem = base.problem.value { throw problem }
      try Self.check(base.entries.value, has: writes.value.map(\.accepted))
    }
  }

  private static func check(_ entries: [StoreKey: Int], has accepted: [Int]) throws {
    for (task, count) in accepted.enumerated() {
      for (key, number) in Writes.entries(task, after: count) where entries[key] ?? 0 < number {
        throw Wrong("\(key) has \(entries[key] ?? 0), not \(number)")
      }
    }
  }

  /// Errors that stay: each accepted write is in the base, replaced by a later one, or in one failure, and a flush throws as long as
  /// there is one.
  @Test(arguments: codes.indices) func `what is given up is reported`(_ index: Int) async throws {
    let code = Self.codes[index]
    try await runSchedules("write-behind over errors that stay, \(code.rawValue)") { context in
      let writes = Shared([Writes](repeating: Writes(), count: 3))
      let (handled, taken) = (Shared<[BatchChange<Int>]>([]), Shared<[BatchChange<Int>]>([]))
      let base = Base(context, errorProbability: 0.3, code: code, areRetryable: false)
      let store = base.writeBehind(bounds: BatchBounds(changes: 6), maximumAge: .milliseconds(5), clock: context.clock)
      {
        failure in handled.change { $0 += failure.changes.changes }
      }
      @Sendable func takeFailures() {
        let failures = store.takeFailures().flatMap(\.changes.changes)
        taken.change { $0 += failures }
      }
      try await concurrently(4) { task in
        if task < 3 {
          do {
            try await Self.write(task, 5, to: store, writes, context)
          } catch StoreError.Code.full {
            // Failures have filled the bounds.
            writes.change { $0[task].begun = $0[task].accepted }
          }
          return
        }
        for round in 0..<4 {
          await Task.yield()
          let (accepted, known) = (writes.value.map(\.accepted), taken.value)
          do {
            try await store.flush()
            try Self.check(base.entries.value, has: accepted, or: known)
          } catch let error as StoreError where error.code == code {
            if handled.value.isEmpty { throw Wrong("a flush failed without a failure") }
          }
          if round > 0 { takeFailures() }
        }
      }
      do {
        try await store.close()
      } catch let error as StoreError where error.code == code {}
      takeFailures()
      guard handled.value == taken.value, Set(taken.value.map { "\($0)" }).count == taken.value.count else {
        throw Wrong("\(taken.value) taken, \(handled.value) handled")
      }
      try Self.check(base.entries.value, has: writes.value.map(\.accepted), or: taken.value)
    }
  }

  /// Throws if the last write to a key which was not given up is not in the base.
  private static func check(_ entries: [StoreKey: Int], has accepted: [Int], or failed: [BatchChange<Int>]) throws {
    for (task, count) in accepted.enumerated() {
      var kept: [StoreKey: Int] = [:]
      for number in 1..<count + 1 {
        let key = Writes.key(task, number)
        if !failed.contains(.set(key, number)) { kept[key] = number }
      }
      for (key, number) in kept where entries[key] ?? 0 < number {
        throw Wrong("\(key) has \(entries[key] ?? 0), not \(number), and \(failed) were given up")
      }
    }
  }

  /// An outage that does not end, and a close with a limit: what was accepted is in the base or in the second store.
  @Test func `closing saves what it cannot write`() async throws {
    let saved = Shared(0)
    let hasRun = try await runSchedules("closing write-behind in an outage") { context in
      let writes = Shared([Writes](repeating: Writes(), count: 3))
      let base = Base(context, errorProbability: 0.1)
      let rescue = context.slowStore(of: UnwrittenChange<Int>.self, number: 1)
      let store = base.writeBehind(
        bounds: BatchBounds(changes: 6), maximumAge: .milliseconds(5), clock: context.clock)
      try await concurrently(5) { task in
        var generator = context.generator("task \(task)")
        switch task {
        case 3:
          await context.pause(upTo: 20, &generator)
          base.errorProbability.change { $0 = 1 }
        case 4:
          await context.pause(upTo: 30, &generator)
          let count = try await store.close(within: .seconds(3), savingTo: rescue)
          saved.change { $0 += count }
        default:
          do {
            try await Self.write(task, 6, to: store, writes, context)
          } catch StoreError.Code.closed {}
        }
      }
      var entries = base.entries.value
      for entry in try rescue.base.entries(in: .all, limit: .max, order: .ascending) {
        guard case .set(let number) = entry.value else { throw Wrong("\(entry) was saved") }
        entries[entry.key] = number
      }
      try Self.check(entries, has: writes.value.map(\.accepted))
      for (task, writes) in writes.value.enumerated() {
        let own = entries.filter { $0.key.hasPrefix(StoreKey("\(task)/")) }
        guard own.values.allSatisfy({ $0 <= writes.begun }) else { throw Wrong("\(own) of \(writes)") }
      }
    }
    #expect(!hasRun || saved.value > 0)
  }

  /// Errors that pass do not show in the results of operations.
  @Test func `one order explains all results`() async throws {
    try await runSchedules("write-behind with retries") { context in
      let history = HistoryTrial("write-behind") { _ in
        Base(context, errorProbability: 0.2).writeBehind(
          bounds: BatchBounds(changes: 6), maximumAge: .milliseconds(5), clock: context.clock)
      }
      try await history.runConcurrently(rounds: 1, seed: context.seed, tasks: 3, length: 5, mayFail: true)
    }
  }
}
