import Dispatch
import Larder
import Synchronization

extension CaseList {
  /// Adds the cases about operations during closing, and about invalid calls after closing.
  mutating func addClosingCases() {
    add(116, "a", "a closed store also refuses invalid calls", in: .lifecycle, checks: .lifecycle) { trial in
      let store = try await trial.open(withKeys: ["a", "b"])
      try await store.close()
      for call in StoreCall<Store>.takingInvalidKeys + StoreCall<Store>.senseless {
        try await expectRefusal("\(call.name) after closing", of: { try await call.run(store) })
      }
      guard !trial.lacking.contains(.persistence) else { return }
      try await expect(
        "the contents after reopening", trial.open(),
        holds: [("a", SampleValue(key: "a")), ("b", SampleValue(key: "b"))])
    }
    add(116, "b", "a cancelled task that uses a closed store gets the error closed", in: .lifecycle, checks: .lifecycle)
    {
      trial in
      let store = try await trial.open(withKeys: ["a", "b"])
      try await store.close()
      for call in StoreCall<Store>.changing {
        try await expect("\(call.name) after closing", throws: .closed) {
          try await inCancelledTask { try await call.run(store) }
        }
      }
    }
    add(117, "", "closing waits for a running update", in: .lifecycle, checks: .lifecycle) { trial in
      let store = try await trial.open(withKeys: ["a"])
      let closing = Closing(of: store)
      try await store.update("a") { slot in
        closing.begin()
        slot = SampleValue("updated")
      }
      try expect("whether close returned while an update was running", closing.cameBackEarly, equals: false)
      try await closing.end()
      try await expect("an operation on the closed store", throws: .closed) { try await store.count() }
      guard !trial.lacking.contains(.persistence) else { return }
      try await expect("the contents after reopening", trial.open(), holds: [("a", SampleValue("updated"))])
    }
    add(
      117, "a", "every call that runs while closing waits either completes or is refused", in: .lifecycle,
      checks: .lifecycle
    ) { trial in
      let store = try await trial.open(withKeys: MeetingCall<Store>.keys)
      let (closing, threads, begun) = (Closing(of: store), SeparateThreads(), DispatchGroup())
      let calls = MeetingCall<Store>.all
      let tasks = Mutex<[Task<Bool, any Error>]>([])
      @Sendable func start(_ calls: [MeetingCall<Store>]) {
        for call in calls {
          begun.enter()
          let task = Task(executorPreference: threads) {
            begun.leave()
            return try await call.completes(on: store)
          }
          tasks.withLock { $0.append(task) }
        }
      }
      try await store.update("updated") { slot in
        // Half of the calls begin before closing, and the other half while it waits.
        start(calls.enumerated().filter { $0.offset.isMultiple(of: 2) }.map(\.element))
        closing.begin()
        start(calls.enumerated().filter { !$0.offset.isMultiple(of: 2) }.map(\.element))
        _ = begun.wait(timeout: .now() + .seconds(2))
        slot = SampleValue("updated")
      }
      try expect("whether close returned while an update was running", closing.cameBackEarly, equals: false)
      try await closing.end()
      var completed: [Bool] = []
      for task in tasks.withLock({ $0 }) { completed.append(try await task.value) }
      for call in calls { try await expectRefusal("\(call.name) after closing", of: { try await call.run(store) }) }
      guard !trial.lacking.contains(.persistence) else { return }
      let inOrder = calls.enumerated().sorted {
        ($0.offset % 2, $0.offset) < ($1.offset % 2, $1.offset)
      }.map(\.element)
      let reopened = try await trial.open()
      for (call, isDone) in zip(inOrder, completed) {
        guard let (key, value) = call.effect else { continue }
        try await expect(
          "the key of \(call.name), which \(isDone ? "completed" : "was refused")", reopened.value(forKey: key),
          equals: isDone ? value : call.valueBefore)
      }
      try await expect("the value from the update", reopened.value(forKey: "updated"), equals: SampleValue("updated"))
    }
    add(
      117, "b", "closing waits for an operation that encodes or decodes a value", in: .lifecycle, checks: .lifecycle,
      needs: .encoding
    ) { trial in
      let keys: [StoreKey] = ["a", "b"]
      let pause = CodingPause()
      let value: SampleValue? = pause.value
      let calls: [StoreCall<Store>] = [
        StoreCall("value", .value) { try await expect("the value", $0.value(forKey: "a"), equals: value) },
        StoreCall("values", .values) {
          try await expect("the values", $0.values(forKeys: keys), equals: [value, SampleValue(key: "b")])
        },
        StoreCall("entries", .entries) {
          try await expect(
            "the entries", $0.entries(in: .all, limit: .max, order: .ascending).map(\.value),
            equals: [value, SampleValue(key: "b")])
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
          try await isCompleted { try await call.run(store) }
        }.value
        pause.disarm()
        guard closing.hasBegun else {
          // A store that caches values may not encode or decode here. It must not do so during the next call either.
          try await store.close()
          continue
        }
        try await closing.end()
        try expect(
          "whether close returned while \(call.name), which completed, was running",
          closing.cameBackEarly && completes, equals: false)
      }
    }
  }
}

/// Runs an operation that may be refused because the store is closing or closed.
///
/// - Returns: Whether the operation completed.
private func isCompleted(_ operation: () async throws -> Void) async throws -> Bool {
  do {
    try await operation()
    return true
  } catch StoreError.Code.closed {
    return false
  }
}

/// Throws a ``Mismatch`` unless a closed store refuses an operation, with the code `closed` or that of an invalid
/// argument.
private func expectRefusal(
  _ subject: String, of operation: () async throws -> Void, file: String = #fileID, line: Int = #line
) async throws {
  let got: String
  do {
    try await operation()
    got = "no error"
  } catch let error as StoreError where [.closed, .invalidKey, .invalidArgument].contains(error.code) {
    return
  } catch {
    got = text(of: error)
  }
  throw Mismatch(
    subject: subject, expected: "a StoreError with code closed, invalidKey or invalidArgument", got: got,
    place: "\(file):\(line)")
}

/// A call that runs while a store is closing, and its effect unless it is refused.
private struct MeetingCall<Store: DataStore>: Sendable where Store.Value == SampleValue? {
  let name: String
  /// The entry that the call writes, under a key that no other call uses; `nil` if the call only reads.
  var effect: (key: StoreKey, value: SampleValue??)?
  /// The value of that key before the call.
  var valueBefore: SampleValue??
  /// Whether the call must always be refused because of its arguments.
  var isSenseless = false
  let run: @Sendable (Store) async throws -> Void

  /// The keys that the store must contain before the calls.
  ///
  /// No call writes to the first three keys.
  static var keys: [StoreKey] { ["read:1", "read:2", "read:3", "removed", "range:1", "updated"] }

  /// Runs the call.
  ///
  /// - Returns: Whether the call completed; `false` if it was refused because the store is closing.
  /// - Throws: A ``Mismatch`` if the result is wrong.
  func completes(on store: Store) async throws -> Bool {
    do {
      try await run(store)
    } catch StoreError.Code.closed {
      return false
    } catch let error as StoreError where isSenseless && [.invalidKey, .invalidArgument].contains(error.code) {
      return false
    }
    try expect("whether the invalid call \(name) completes", isSenseless, equals: false)
    return true
  }

  /// Every operation of the contract.
  static var all: [MeetingCall] { reading + writing + senseless }

  private static var reading: [MeetingCall] {
    let keys = Array(keys.prefix(3))
    let values = keys.map { SampleValue(key: $0) as SampleValue? }
    let range = KeyRange.prefix("read:")
    return [
      MeetingCall(name: "value") { try await expect("value", $0.value(forKey: keys[0]), equals: values[0]) },
      MeetingCall(name: "values") { try await expect("values", $0.values(forKeys: keys), equals: values) },
      MeetingCall(name: "contains") { try await expect("contains", $0.contains(keys[1]), equals: true) },
      MeetingCall(name: "entries") {
        try await expect(
          "entries", $0.entries(in: range, limit: .max, order: .ascending),
          equals: zip(keys, values).map { StoreEntry(key: $0, value: $1) })
      },
      MeetingCall(name: "entries, limit 0") {
        try await expect("entries", $0.entries(in: .all, limit: 0, order: .ascending), equals: [])
      },
      MeetingCall(name: "keys") {
        try await expect("keys", $0.keys(in: range, limit: 2, order: .descending), equals: [keys[2], keys[1]])
      },
      MeetingCall(name: "keys in an empty range") {
        try await expect("keys", $0.keys(in: "b"..<"a", limit: .max, order: .ascending), equals: [])
      },
      MeetingCall(name: "count") { try await expect("count", $0.count(in: range), equals: 3) },
      MeetingCall(name: "page") {
        try await expect("page", $0.pages(of: range, size: 2).page().entries.map(\.key), equals: [keys[0], keys[1]])
      },
      MeetingCall(name: "synchronize") { try await $0.synchronize() },
    ]
  }

  private static var writing: [MeetingCall] {
    let value: SampleValue? = SampleValue("written")
    return [
      MeetingCall(name: "setValue", effect: ("set", value)) { try await $0.setValue(value, forKey: "set") },
      MeetingCall(name: "apply", effect: ("applied", value)) {
        try await $0.apply([.set("applied too", nil), .set("applied", value)])
      },
      MeetingCall(name: "removeValue", effect: ("removed", nil), valueBefore: SampleValue(key: "removed")) {
        try await $0.removeValue(forKey: "removed")
      },
      MeetingCall(name: "removeAll", effect: ("range:1", nil), valueBefore: SampleValue(key: "range:1")) {
        try await $0.removeAll(in: .prefix("range:"))
      },
      MeetingCall(name: "update", effect: ("other", value)) { try await $0.update("other") { $0 = value } },
    ]
  }

  private static var senseless: [MeetingCall] {
    let invalid = StoreCall<Store>.taking("").filter { ["value", "update"].contains($0.name) }
    return (invalid + StoreCall<Store>.senseless).map { call in
      MeetingCall(name: call.name, isSenseless: true, run: call.run)
    }
  }
}

/// A call of `close`, on a separate thread, in the middle of another operation.
private final class Closing<Store: DataStore>: Sendable {
  private let store: Store
  private let threads = SeparateThreads()
  private let (isCalled, hasReturned, early) = (Flag(), Flag(), Flag())
  private let task = Mutex<Task<Void, any Error>?>(nil)

  init(of store: Store) {
    self.store = store
  }

  /// Whether `close` was called.
  var hasBegun: Bool { isCalled.isRaised }

  /// Whether `close` returned while the operation was still running.
  var cameBackEarly: Bool { early.isRaised }

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
  /// - Throws: Any error from `close`.
  func end() async throws {
    try await task.withLock { $0 }?.value
  }
}
