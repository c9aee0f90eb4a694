import Dispatch
import Larder

extension CaseList {
  /// Adds the cases about operations during closing, and about invalid calls after closing.
  mutating func addClosingCases() {
    begin(.lifecycle, checking: .lifecycle)
    add("116a", "a closed store also refuses invalid calls", keys: ["a", "b"]) { store, trial in
      try await store.close()
      for call in StoreCall<Store>.takingInvalidKeys + StoreCall<Store>.senseless {
        try await expectRefusal(of: call, on: store, with: [.closed, .invalidKey, .invalidArgument])
      }
      try await trial.expectReopened(holds: Entries(keys: ["a", "b"]))
    }
    add("116b", "a cancelled task that uses a closed store gets the error closed", keys: ["a", "b"]) { store, _ in
      try await store.close()
      for call in StoreCall<Store>.changing {
        try await expect("\(call.name) after closing", throws: .closed) {
          try await inCancelledTask { try await call.run(store) }
        }
      }
    }
    add("117", "closing waits for a running update", keys: ["a"]) { store, trial in
      let closing = Closing(of: store)
      try await store.update("a") { slot in
        closing.begin()
        slot = "updated"
      }
      try await closing.end()
      try await expect("an operation on the closed store", throws: .closed) { try await store.count() }
      try await trial.expectReopened(holds: ["a": "updated"])
    }
    add(
      "117a", "every call that runs while closing waits either completes or is refused", keys: MeetingCall<Store>.keys
    ) { store, trial in
      let (closing, threads, begun) = (Closing(of: store), SeparateThreads(), DispatchGroup())
      let calls = MeetingCall<Store>.all
      let tasks = Locked<[(MeetingCall<Store>, Task<Bool, any Error>)]>([])
      @Sendable func start(_ calls: [MeetingCall<Store>]) {
        for call in calls {
          begun.enter()
          let task = Task(executorPreference: threads) {
            begun.leave()
            return try await call.completes(on: store)
          }
          tasks.withLock { $0.append((call, task)) }
        }
      }
      try await store.update("updated") { slot in
        // Half of the calls begin before closing, and the other half while it waits.
        start(stride(from: 0, to: calls.count, by: 2).map { calls[$0] })
        closing.begin()
        start(stride(from: 1, to: calls.count, by: 2).map { calls[$0] })
        _ = begun.wait(timeout: .now() + .seconds(2))
        slot = "updated"
      }
      try await closing.end()
      var effects: [(MeetingCall<Store>, isDone: Bool)] = []
      for (call, task) in tasks.withLock({ $0 }) { effects.append((call, try await task.value)) }
      for call in calls {
        try await expectRefusal(of: call.call, on: store, with: [.closed, .invalidKey, .invalidArgument])
      }
      guard trial.isPersistent else { return }
      let reopened = try await trial.open()
      for (call, isDone) in effects {
        guard let effect = call.effect else { continue }
        try await expect(
          "the key of \(call.call.name), which \(isDone ? "completed" : "was refused")",
          reopened.value(forKey: effect.key), equals: isDone ? effect.after : effect.before)
      }
      try await expect("the value from the update", reopened.value(forKey: "updated"), equals: "updated")
    }
    add("117b", "closing waits for an operation that encodes or decodes a value", needs: .encoding) { trial in
      let keys: [StoreKey] = ["a", "b"]
      let pause = CodingPause()
      let value: SampleValue? = SampleValue(pause)
      let other: SampleValue? = SampleValue(key: "b")
      let calls: [StoreCall<Store>] = [
        StoreCall("value", .value) { try await expect("the value", $0.value(forKey: "a"), equals: value) },
        StoreCall("values", .values) {
          try await expect("the values", $0.values(forKeys: keys), equals: [value, other])
        },
        StoreCall("entries", .entries) {
          try await expect("the entries", $0.entries(in: .all, limit: 9).map(\.value), equals: [value, other])
        },
        StoreCall("apply", .apply) { try await $0.apply([.set("c", value), .set("d", nil)]) },
        StoreCall("update", .update) { try await $0.update(keys) { $0[1] = value } },
      ]
      for call in calls {
        let store = try await trial.openElsewhere(withKeys: keys)
        try await store.setValue(value, forKey: "a")
        let closing = Closing(of: store)
        pause.arm { closing.begin() }
        defer { pause.disarm() }
        let completes = try await Task(executorPreference: SeparateThreads()) {
          try await MeetingCall(call: call).completes(on: store)
        }.value
        pause.disarm()
        // A store that caches values may not encode or decode here. It must not do so during the next call either.
        guard closing.hasBegun else {
          try await store.close()
          continue
        }
        try await closing.end(mayReturnEarly: !completes)
      }
    }
  }
}

/// Throws a ``Mismatch`` unless a store refuses a call with one of several codes.
private func expectRefusal<Store>(
  of call: StoreCall<Store>, on store: Store, with codes: [StoreError.Code]
) async throws {
  try await expect(
    "\(call.name) after closing", throws: "a StoreError with one of the codes \(codes)",
    where: { error in (error as? StoreError).flatMap { codes.contains($0.code) ? $0 : nil } },
    by: { try await call.run(store) })
}

/// A call that runs while a store is closing.
private struct MeetingCall<Store: DataStore>: Sendable where Store.Value == SampleValue? {
  /// A call that throws a ``Mismatch`` if its result is wrong.
  let call: StoreCall<Store>
  /// A key that no other call uses, and its values before and after the call; `nil` if the call only reads.
  var effect: (key: StoreKey, before: SampleValue??, after: SampleValue??)?
  /// A Boolean value that indicates whether the call must always be refused because of its arguments.
  var isSenseless = false

  /// The keys that the store must contain before the calls.
  static var keys: [StoreKey] { ["read:1", "read:2", "read:3", "removed", "range:1", "updated"] }

  /// Runs the call.
  ///
  /// - Returns: A Boolean value that indicates whether the call completed; `false` if it was refused because the store
  ///   is closing.
  /// - Throws: A ``Mismatch`` if the result is wrong.
  func completes(on store: Store) async throws -> Bool {
    do {
      try await call.run(store)
    } catch StoreError.Code.closed {
      return false
    } catch let error as StoreError where isSenseless && [.invalidKey, .invalidArgument].contains(error.code) {
      return false
    }
    try expect("whether the invalid call \(call.name) completes", isSenseless, equals: false)
    return true
  }

  /// Every operation of the contract.
  static var all: [MeetingCall] {
    let invalid = StoreCall<Store>.taking("").filter { ["value", "update"].contains($0.name) }
    return reading.map { MeetingCall(call: $0) } + writing
      + (invalid + StoreCall.senseless).map { MeetingCall(call: $0, isSenseless: true) }
  }

  private static var reading: [StoreCall<Store>] {
    let keys = Array(keys.prefix(3))
    let values = keys.map { SampleValue(key: $0) as SampleValue? }
    let range = KeyRange.prefix("read:")
    return [
      StoreCall("value", .value) { try await expect("value", $0.value(forKey: keys[0]), equals: values[0]) },
      StoreCall("values", .values) { try await expect("values", $0.values(forKeys: keys), equals: values) },
      StoreCall("contains", .keys) { try await expect("contains", $0.contains(keys[1]), equals: true) },
      StoreCall("entries", .entries) {
        try await expect("entries", $0.entries(in: range, limit: 9).map(\.value), equals: values)
      },
      StoreCall("entries, limit 0", .entries) {
        try await expect("entries", $0.entries(in: .all, limit: 0), equals: [])
      },
      StoreCall("keys", .keys) {
        try await expect("keys", $0.keys(in: range, limit: 2, order: .descending), equals: [keys[2], keys[1]])
      },
      StoreCall("keys in an empty range", .keys) {
        try await expect("keys", $0.keys(in: "b"..<"a", limit: .max), equals: [])
      },
      StoreCall("count", .count) { try await expect("count", $0.count(in: range), equals: 3) },
      StoreCall("page", .entries) {
        try await expect("page", $0.pages(of: range, size: 2).page().entries.map(\.key), equals: [keys[0], keys[1]])
      },
      StoreCall("synchronize", .synchronize) { try await $0.synchronize() },
    ]
  }

  private static var writing: [MeetingCall] {
    let value: SampleValue? = "written"
    func call(
      _ name: String, _ operation: StoreOperation, _ key: StoreKey, after: SampleValue??,
      _ run: @escaping @Sendable (Store) async throws -> Void
    ) -> MeetingCall {
      let before = keys.contains(key) ? SampleValue?.some(SampleValue(key: key)) : nil as SampleValue??
      return MeetingCall(call: StoreCall(name, operation, run), effect: (key, before, after))
    }
    return [
      call("setValue", .apply, "set", after: value) { try await $0.setValue(value, forKey: "set") },
      call("apply", .apply, "applied", after: value) {
        try await $0.apply([.set("applied too", nil), .set("applied", value)])
      },
      call("removeValue", .apply, "removed", after: nil) { try await $0.removeValue(forKey: "removed") },
      call("removeAll", .apply, "range:1", after: nil) { try await $0.removeAll(in: .prefix("range:")) },
      call("update", .update, "other", after: value) { try await $0.update("other") { $0 = value } },
    ]
  }
}

/// A call of `close`, on a separate thread, in the middle of another operation.
private final class Closing<Store: DataStore>: Sendable {
  private let store: Store
  private let threads = SeparateThreads()
  private let (isCalled, hasReturned, early) = (Flag(), Flag(), Flag())
  private let task = Locked<Task<Void, any Error>?>(nil)

  init(of store: Store) {
    self.store = store
  }

  /// A Boolean value that indicates whether `close` was called.
  var hasBegun: Bool { isCalled.isRaised }

  /// Calls `close` and blocks the thread long enough for it to return too early.
  ///
  /// Call this method in the middle of an operation that must not be suspended.
  func begin() {
    let (store, isCalled, hasReturned) = (store, isCalled, hasReturned)
    let task = Task(executorPreference: threads) {
      isCalled.raise()
      try await store.close()
      hasReturned.raise()
    }
    self.task.withLock { $0 = task }
    _ = isCalled.isRaised(within: .seconds(2))
    // A store with files may synchronize them before it returns too early.
    if hasReturned.isRaised(within: .milliseconds(store.information.durability == .volatile ? 5 : 30)) {
      early.raise()
    }
  }

  /// Waits until `close` has returned.
  ///
  /// - Parameter mayReturnEarly: A Boolean value that indicates whether `close` may return while the operation is
  ///   running. Defaults to `false`.
  /// - Throws: A ``Mismatch`` if `close` returned too early, or any error from `close`.
  func end(mayReturnEarly: Bool = false) async throws {
    try await task.withLock { $0 }?.value
    try expect(
      "whether close returned while an operation was running", early.isRaised && !mayReturnEarly, equals: false)
  }
}
