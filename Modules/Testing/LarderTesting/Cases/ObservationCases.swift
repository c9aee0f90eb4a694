import Larder

extension CaseList {
  /// Adds the cases about the observation of a store through `AnyDataStore.observation`.
  mutating func addObservationCases() {
    begin(.observation, checking: .observation)
    addReportCases()
    addStateCases()
    addObserverCases()
    let (name, rounds) = (settings.name, settings.rounds)
    add("275", "after random histories, the last state of every observer is that of the store", keys: []) {
      observed, trial in
      var generator = trial.makeGenerator()
      let seed = generator.next()
      func run(on store: some ObservableStore<SampleValue?>) async throws {
        let histories = ObservationTrial(name, store) { try await observed.settle() }
        try await expectNoFailure { try await histories.run(rounds: 4 * rounds, seed: seed) }
      }
      try await run(on: observed.observation)
    }
  }

  /// Adds a case that begins with an open store that can be observed.
  private mutating func add(
    _ id: String, _ name: String, keys: [StoreKey], file: String = #fileID, line: Int = #line,
    _ body: @escaping @Sendable (Observed<Store>, Trial<Store>) async throws -> Void
  ) {
    add(id, name, keys: keys, needs: .observation, file: file, line: line) { store, trial in
      let observed = try Observed(store)
      // The entries may still be pending, and would be reported during the case.
      try await observed.settle()
      try await body(observed, trial)
    }
  }

  // MARK: Reports

  private mutating func addReportCases() {
    add(
      "260", "every kind of write has been reported when it returns, in the order of the writes",
      keys: ["a", "b", "c", "d", "q", "s"]
    ) { observed, _ in
      let store = observed.store
      let reports = Reports(of: .all, in: observed.observation)
      let writes: [(StoreCall<Store>, keys: [StoreKey], Entries)] = [
        (StoreCall("setValue", .apply) { try await $0.setValue("new", forKey: "a") }, ["a"], ["a": "new"]),
        (StoreCall("removeValue", .apply) { try await $0.removeValue(forKey: "b") }, ["b"], [:]),
        (StoreCall("removeAll", .apply) { try await $0.removeAll(in: "c"..<"e") }, ["c", "d"], [:]),
        (
          StoreCall("update", .update) { try await $0.update(["a", "x"]) { $0.assign([nil, .some(nil)]) } },
          ["a", "x"],
          ["x": nil]
        ),
        (
          StoreCall("apply", .apply) { try await $0.apply([.set("p", "new"), .remove("q"), .removeAll("r"..<"t")]) },
          ["p", "q", "s"], ["p": "new"]
        ),
      ]
      for (call, keys, entries) in writes {
        try await call.run(store)
        try await observed.settle()
        // The changes of a write come after those of the writes before.
        let changes = reports.take()
        for key in keys {
          try expect(
            "whether the changes reported by \(call.name) cover \(key)",
            changes.contains { $0.range.contains(key) }, equals: true)
          try await expect("the value of \(key)", store.value(forKey: key), equals: entries[key])
        }
      }
    }
    add("260a", "an update reports neither what it did not assign nor what it discards", keys: ["a", "b"]) {
      observed, _ in
      let reports = Reports(of: .only("a"), in: observed.observation)
      try await observed.store.update(["a", "b"]) { slots in slots[1] = slots[0] }
      try await observed.store.update(deciding: ["a"]) { slots in
        slots[0] = nil
        return .discard(())
      }
      try await observed.settle()
      try expect("the reported changes", reports.take(), equals: [])
    }
    add("260b", "a write reports a key to which it gives an equal value", keys: ["a"]) { observed, _ in
      let reports = Reports(of: .all, in: observed.observation)
      let value = try await observed.store.value(forKey: "a") ?? nil
      let writes: [StoreCall<Store>] = [
        StoreCall("update", .update) { store in
          try await store.update(["a", "b"]) { slots in
            slots[0] = slots[0]
            slots[1] = nil
          }
        },
        StoreCall("apply", .apply) { try await $0.apply([.set("a", value), .remove("b")]) },
      ]
      for call in writes {
        try await call.run(observed.store)
        try await observed.settle()
        let changes = reports.take()
        for key: StoreKey in ["a", "b"] {
          try expect(
            "whether the changes reported by \(call.name) cover \(key)",
            changes.contains { $0.range.contains(key) }, equals: true)
        }
      }
    }
    add("261", "a write is not reported before its commit", keys: ["a"]) { observed, _ in
      let reports = Reports(of: .only("a"), in: observed.observation)
      let early = try await observed.store.update("a") { slot in
        slot = "new"
        return reports.take()
      }
      try expect("the changes reported before the update has ended", early, equals: [])
      try await observed.settle()
      try expect("whether the update is reported", reports.take().isEmpty, equals: false)
    }
    add("262", "an observation that begins during a write reports it", keys: ["a"]) { observed, _ in
      let begun = Locked<Reports?>(nil)
      try await observed.store.update("a") { slot in
        slot = "new"
        let reports = Reports(of: .only("a"), in: observed.observation)
        begun.withLock { $0 = reports }
      }
      try await observed.settle()
      try expect("whether the update is reported", begun.withLock { $0?.take() }?.isEmpty, equals: false)
    }
    add("263", "a reader that has fallen behind gets few changes, which cover all", keys: []) { observed, _ in
      let keys = (0..<400).map { StoreKey("k\(1000 + $0)") }
      let changes = observed.observation.changes(in: .prefix("k"))
      for start in stride(from: 0, to: keys.count, by: 20) {
        try await observed.store.apply(ChangeBatch(keys[start..<start + 20].map { .set($0, nil) }))
        try await observed.settle()
      }
      var missing = Set(keys)
      var count = 0
      var iterator = changes.makeAsyncIterator()
      while !missing.isEmpty {
        let change = await iterator.next()
        count += 1
        try expect("the number of changes, at most", max(count, 300), equals: 300)
        missing = missing.filter { change?.range.contains($0) == false }
      }
    }
  }

  // MARK: States

  private mutating func addStateCases() {
    add("264", "the states of a value are the current one and each newer one that differs", keys: ["b"]) {
      observed, _ in
      let (store, follower) = (observed.store, Follower("updates(forKey:)", observed.observation.updates(forKey: "a")))
      try await expect("the state of a missing value", follower.next(), equals: .some(nil))
      for value: SampleValue?? in ["first", .some(nil), nil, "second"] {
        if let value { try await store.setValue(value, forKey: "a") } else { try await store.removeValue(forKey: "a") }
        try await observed.settle()
        try await expect("the next state", follower.next(), equals: .some(value))
      }
      try await store.setValue("second", forKey: "a")
      try await store.setValue("other", forKey: "b")
      try await observed.settle()
      try await store.update("a") { $0 = "third" }
      try await observed.settle()
      try await expect("the state after equal ones", follower.next(), equals: .some("third"))
    }
    add("265", "the states of a range are its first entries", keys: ["a", "b", "c", "d", "e"]) { observed, _ in
      let store = observed.store
      let follower = Follower(
        "entries(observing:)", observed.observation.entries(observing: "b"..<"e", limit: 2, order: .descending))
      func expectNext(_ keys: [StoreKey]) async throws {
        try await observed.settle()
        let seen = try await follower.elements { $0.map(\.key) == keys }
        for state in seen { try expect("the number of entries, at most", max(state.count, 2), equals: 2) }
      }
      try await expectNext(["d", "c"])
      try await store.removeValue(forKey: "d")
      try await expectNext(["c", "b"])
      try await store.apply([.set("cc", nil), .set("e", nil), .set("a", nil)])
      try await expectNext(["cc", "c"])
      try await store.removeAll()
      try await expectNext([])
    }
    add("266", "observers that begin while values are written miss none", keys: []) { observed, _ in
      let last = SampleValue(integer: 24)
      let followers = Locked<[Follower<SampleValue??>]>([])
      for number in 1...last.integer {
        async let written: Void = observed.store.setValue(SampleValue(integer: number), forKey: "a")
        if number.isMultiple(of: 4) {
          let follower = Follower("updates(forKey:) from \(number)", observed.observation.updates(forKey: "a"))
          followers.withLock { $0.append(follower) }
        }
        try await written
      }
      try await observed.settle()
      for follower in followers.withLock({ $0 }) {
        let seen = try await follower.elements { $0 == .some(last) }.map { ($0 ?? nil)?.integer ?? 0 }
        try expect("the states in order", seen, equals: Array(Set(seen)).sorted())
      }
    }
  }

  // MARK: Observers

  private mutating func addObserverCases() {
    add("267", "cancellation ends an observer and leaves the others", keys: ["a"]) { observed, _ in
      let store = observed.observation
      let changes = [0, 1].map { Follower("changes() \($0)", store.changes()) }
      let values = [0, 1].map { Follower("updates(forKey:) \($0)", store.updates(forKey: "a")) }
      let entries = [0, 1].map { Follower("entries(observing:) \($0)", store.entries(observing: .all)) }
      for follower in values { _ = try await follower.next() }
      for follower in entries { _ = try await follower.next() }
      changes[0].cancel()
      values[0].cancel()
      entries[0].cancel()
      try await expect("the changes after cancellation", changes[0].rest(), equals: [])
      try await expect("the values after cancellation", values[0].rest(), equals: [])
      try await expect("the entries after cancellation", entries[0].rest(), equals: [])
      try await observed.store.setValue("new", forKey: "a")
      try await observed.settle()
      try await expect("whether the change covers the key", changes[1].next()?.range.contains("a"), equals: true)
      try await expect("the next value", values[1].next(), equals: .some("new"))
      try await expect("the next entries", entries[1].next(), equals: [StoreEntry(key: "a", value: "new")])
    }
    add("268", "closing ends every observer, once and at last", keys: ["a"]) { observed, _ in
      let store = observed.observation
      let reports = Reports(of: .all, in: store)
      let (changes, values) = (Follower("changes()", store.changes()), Follower("values", store.updates(forKey: "a")))
      _ = try await values.next()
      try await concurrently(5) { index in
        guard index > 0 else { return try await observed.store.close() }
        do {
          try await observed.store.setValue("new", forKey: StoreKey("\(index)"))
        } catch StoreError.Code.closed {}
      }
      // They end, or this would not.
      _ = try await (changes.rest(), values.rest())
      try expect("the number of reported ends", reports.endCount, equals: 1)
      try expect("whether the end is the last event", reports.hasEnded, equals: true)
      let late = Reports(of: .all, in: store)
      try expect("the number of ends reported to an observer of a closed store", late.endCount, equals: 1)
      try await expect("the changes of a closed store", Follower("changes()", store.changes()).rest(), equals: [])
      try await expect(
        "the values of a closed store", Follower("values", store.updates(forKey: "a")).rest(), equals: [])
    }
    add("269", "observers do not keep a store open", needs: .observation) { trial in
      let followers = try await Task { () -> (Follower<StoreChange>, Follower<SampleValue??>) in
        // The only reference to the store ends with this closure.
        let store = try Observed(await trial.openUntracked()).observation
        let values = Follower("updates(forKey:)", store.updates(forKey: "a"))
        _ = try await values.next()
        return (Follower("changes()", store.changes()), values)
      }.value
      try await expect("the changes of a released store", followers.0.rest(), equals: [])
      try await expect("the values of a released store", followers.1.rest(), equals: [])
    }
  }
}

/// A store that a case observes.
private struct Observed<Store: DataStore>: Sendable where Store.Value == SampleValue? {
  let store: Store
  let observation: any ObservableStore<SampleValue?>

  init(_ store: Store) throws {
    self.store = store
    guard let observation = AnyDataStore(store).observation else {
      throw Mismatch(subject: "whether the store can be observed", expected: "an ObservableStore", got: "none")
    }
    self.observation = observation
  }

  /// Writes what is pending, which is reported when it is committed.
  func settle() async throws {
    try await AnyDataStore(store).flushing?.flush()
  }
}

/// The events that a store has reported to an observer.
private final class Reports: Sendable {
  private struct State {
    var changes: [StoreChange] = []
    var endCount = 0
    var hasEnded = false
  }

  /// Shared with the observer, which must not hold its own observation.
  private final class Record: Sendable {
    let state = Locked(State())
  }

  private let record: Record
  private let observation: StoreObservation

  init(of range: KeyRange, in store: any ObservableStore<SampleValue?>) {
    let record = Record()
    self.record = record
    observation = store.observe(range) { event in
      record.state.withLock { state in
        switch event {
        case .changed(let changes):
          state.changes += changes
          state.hasEnded = false
        case .closed:
          state.endCount += 1
          state.hasEnded = true
        }
      }
    }
  }

  var endCount: Int { record.state.withLock { $0.endCount } }
  var hasEnded: Bool { record.state.withLock { $0.hasEnded } }

  /// Returns the changes since the last call.
  func take() -> [StoreChange] {
    record.state.withLock { state in
      defer { state.changes = [] }
      return state.changes
    }
  }
}
