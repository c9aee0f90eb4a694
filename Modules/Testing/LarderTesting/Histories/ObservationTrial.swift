public import Larder

/// A trial that runs random writers and observers of a store concurrently.
///
/// The last state of every observer must equal that of the store, no observer may see a state that is older than one
/// that it has seen, and a cancelled observer must end.
///
/// ```swift
/// let trial = ObservationTrial("observable", MemoryStore<SampleValue?>().observable())
/// try await trial.run(rounds: 100, seed: SeededGenerator.seedOfProcess)
/// ```
public struct ObservationTrial<Store: ObservableStore>: Sendable where Store.Value == SampleValue? {
  private let name: String
  private let store: Store
  private let clock: any Clock<Duration>
  private let settle: (@Sendable () async throws -> Void)?
  private let mayFail: Bool

  /// Creates a trial of an open store, whose entries are replaced.
  ///
  /// - Parameters:
  ///   - name: The name of the store in failures.
  ///   - store: The store.
  ///   - clock: The clock of the observers. Defaults to a `ContinuousClock`.
  ///   - mayFail: A Boolean value that indicates whether operations may throw a `StoreError`, as those of a
  ///     ``FaultyStore`` do. Defaults to `false`.
  ///   - settle: A closure that is called after the writers have ended, to write what is pending and to end faults.
  ///     Defaults to `nil`.
  public init(
    _ name: String, _ store: Store, clock: any Clock<Duration> = ContinuousClock(), mayFail: Bool = false,
    settle: (@Sendable () async throws -> Void)? = nil
  ) {
    self.name = name
    self.store = store
    self.clock = clock
    self.mayFail = mayFail
    self.settle = settle
  }

  /// Runs random histories.
  ///
  /// - Parameters:
  ///   - rounds: The number of histories.
  ///   - seed: The seed of the histories. The system determines which steps run concurrently.
  ///   - prepare: A closure that is called before each history. Defaults to a no-op.
  /// - Throws: ``TrialFailure``; `CancellationError` if the task is cancelled.
  public func run(
    rounds: Int, seed: UInt64, prepare: @Sendable () async throws -> Void = {}
  ) async throws {
    var generator = SeededGenerator(seed: seed)
    for round in 0..<max(0, rounds) {
      try Task.checkCancellation()
      do {
        try await store.removeAll()
        try await prepare()
        try await runHistory(using: &generator)
      } catch {
        try Task.checkCancellation()
        let mismatch = error as? Mismatch
        let message = mismatch.map { "\($0.subject): expected \($0.expected), got \($0.got)" } ?? text(of: error)
        throw TrialFailure(store: name, message: "in history \(round), \(message)", seed: seed)
      }
    }
  }

  private func runHistory(using generator: inout SeededGenerator) async throws {
    let observers = Locked((0..<4).map { _ in observer(using: &generator) })
    let cancelled = (0..<2).map { _ in observer(using: &generator) }
    let seeds = (0..<4).map { _ in generator.next() }
    // Some observers begin and others are cancelled while the writers run.
    try await concurrently(4) { task in
      var generator = SeededGenerator(seed: seeds[task])
      guard task == 3 else { return try await write(using: &generator) }
      for cancelled in cancelled {
        await yield(upTo: 60, using: &generator)
        let late = observer(using: &generator)
        observers.withLock { $0.append(late) }
        cancelled.follower.cancel()
      }
    }
    try await settle?()
    let final = try await store.entries(in: .all, limit: .max, order: .ascending)
    for observer in observers.withLock({ $0 }) { try await observer.expectLast(of: final) }
    for observer in cancelled { try observer.expectOrder(of: await observer.follower.rest()) }
  }

  private func yield(upTo count: Int, using generator: inout SeededGenerator) async {
    for _ in 0..<Int.random(in: 0...count, using: &generator) { await Task.yield() }
  }

  // MARK: Writing

  /// The key of a number that every update of it increases, and that nothing else writes.
  private static var number: StoreKey { "number" }

  private static var keys: [StoreKey] { ["a", "b", "c", "d", "e", "f"] }

  /// Runs some random writes.
  private func write(using generator: inout SeededGenerator) async throws {
    for step in 0..<Int.random(in: 2...6, using: &generator) {
      await yield(upTo: 8, using: &generator)
      let batch = batch(using: &generator)
      do {
        if step.isMultiple(of: 2) {
          let key = ObservationTrial.keys.randomElement(using: &generator) ?? "a"
          let isRemoval = Bool.random(using: &generator)
          try await store.update([ObservationTrial.number, key]) { slots in
            let number = ((slots[0] ?? nil)?.integer ?? 0) + 1
            slots[0] = SampleValue(integer: number)
            slots[1] = isRemoval ? nil : .some(SampleValue(integer: number))
          }
        } else {
          try await store.apply(batch)
        }
      } catch is StoreError where mayFail {
        continue
      }
    }
  }

  private func batch(using generator: inout SeededGenerator) -> ChangeBatch<SampleValue?> {
    ChangeBatch(
      (0..<Int.random(in: 1...3, using: &generator)).map { _ in
        let keys = ObservationTrial.keys
        let key = keys.randomElement(using: &generator) ?? "a"
        let end = keys.randomElement(using: &generator) ?? "a"
        return switch Int.random(in: 0..<4, using: &generator) {
        case 0: .remove(key)
        case 1: .removeAll(key..<end)
        case 2: .set(key, nil)
        default: .set(key, SampleValue(integer: .random(in: 0..<3, using: &generator)))
        }
      })
  }

  // MARK: Observing

  /// A random observer.
  private func observer(using generator: inout SeededGenerator) -> Observer {
    let pause = [0, 0, 3, 30].randomElement(using: &generator) ?? 0
    let kind = Int.random(in: 0..<4, using: &generator)
    switch kind {
    case 0, 1:
      let key = kind == 0 ? ObservationTrial.number : ObservationTrial.keys.randomElement(using: &generator) ?? "a"
      return Observer(
        "updates(forKey: \"\(key)\")", store.updates(forKey: key, clock: clock), isNumber: kind == 0, pause: pause,
        mayFail: mayFail
      ) { entries in
        entries.filter { $0.key == key }
      } entries: { value in
        value.map { [StoreEntry(key: key, value: $0)] } ?? []
      }
    case 2:
      let range: KeyRange = Bool.random(using: &generator) ? .all : "b"..<"e"
      let limit = [Int.max, 2].randomElement(using: &generator) ?? 2
      let order = ScanOrder.allCases.randomElement(using: &generator) ?? .ascending
      return Observer(
        "entries(observing: \(range), limit: \(limit), order: \(order))",
        store.entries(observing: range, limit: limit, order: order, clock: clock), pause: pause, mayFail: mayFail
      ) { entries in
        Array(order.applied(to: entries.filter { range.contains($0.key) }).prefix(limit))
      } entries: { entries in
        entries
      }
    default: return mirror(pause: pause)
    }
  }

  /// An observer that keeps a copy of the store by reading what changes.
  private func mirror(pause: Int) -> Observer {
    let (store, mayFail) = (store, mayFail)
    // The observation begins before the first read.
    let changes = store.changes()
    let follower = Follower<[StoreEntry<SampleValue?>]>("changes()") { see in
      @Sendable func entries(in range: KeyRange) async throws -> [StoreEntry<SampleValue?>] {
        while true {
          do {
            return try await store.entries(in: range, limit: .max, order: .ascending)
          } catch is StoreError where mayFail {
            await Task.yield()
          }
        }
      }
      do {
        var copy = try await entries(in: .all)
        see(copy)
        for await change in changes {
          for _ in 0..<pause { await Task.yield() }
          let current = try await entries(in: change.range)
          copy = (copy.filter { !change.range.contains($0.key) } + current).sorted { $0.key < $1.key }
          see(copy)
        }
      } catch is CancellationError {
        return
      }
    }
    return Observer(name: "a copy by changes()", follower: follower) { $0 }
  }
}

/// An observer whose states are lists of entries.
private struct Observer: Sendable {
  let name: String
  /// A Boolean value that indicates whether the states are those of a number that increases.
  var isNumber = false
  /// A Boolean value that indicates whether no state is equal to the one before.
  var isDistinct = false
  let follower: Follower<[StoreEntry<SampleValue?>]>
  /// Returns the state that belongs to all entries of the store.
  let shown: @Sendable ([StoreEntry<SampleValue?>]) -> [StoreEntry<SampleValue?>]
}

extension Observer {
  /// Creates an observer of states.
  ///
  /// - Parameters:
  ///   - name: The name in failures.
  ///   - states: The states.
  ///   - isNumber: A Boolean value that indicates whether the states are those of a number that increases.
  ///   - pause: The number of yields between two states.
  ///   - mayFail: A Boolean value that indicates whether a state may be unreadable.
  ///   - shown: A closure that returns the state that belongs to all entries of the store.
  ///   - entries: A closure that returns a state as entries.
  init<State: Sendable>(
    _ name: String, _ states: StoreStates<State>, isNumber: Bool = false, pause: Int, mayFail: Bool,
    shown: @escaping @Sendable ([StoreEntry<SampleValue?>]) -> [StoreEntry<SampleValue?>],
    entries: @escaping @Sendable (State) -> [StoreEntry<SampleValue?>]
  ) {
    let follower = Follower<[StoreEntry<SampleValue?>]>(name) { see in
      var iterator = states.makeAsyncIterator()
      while true {
        do {
          guard let state = try await iterator.next() else { return }
          see(entries(state))
        } catch is StoreError where mayFail {
          // The iterator survives it.
        }
        for _ in 0..<pause { await Task.yield() }
      }
    }
    // After an error, a state may be equal to the one before.
    self.init(name: name, isNumber: isNumber, isDistinct: !mayFail, follower: follower, shown: shown)
  }

  /// Throws a ``Mismatch`` unless the observer reaches the state of the store, and ends when it is cancelled.
  func expectLast(of entries: [StoreEntry<SampleValue?>]) async throws {
    let seen = try await follower.elements(upToLast: shown(entries))
    follower.cancel()
    try expectOrder(of: await seen + follower.rest())
  }

  /// Throws a ``Mismatch`` if a state is repeated, or older than the one before.
  func expectOrder(of states: [[StoreEntry<SampleValue?>]]) throws {
    for (state, next) in zip(states, states.dropFirst()) where isDistinct {
      try expect("whether \(name) repeats \(text(of: state))", state == next, equals: false)
    }
    guard isNumber else { return }
    let numbers = states.map { ($0.first?.value)?.integer ?? 0 }
    try expect("the numbers of \(name)", numbers, equals: numbers.sorted())
  }
}
