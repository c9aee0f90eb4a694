import Dispatch
import Larder
import Synchronization

extension CaseList {
  /// What happens while closing waits, and to what makes no sense behind it.
  mutating func addClosingCases() {
    add(116, "a", "a closed store refuses what makes no sense as well", in: .lifecycle, checks: .lifecycle) { trial in
      let store = try await trial.open(withKeys: ["a", "b"])
      try await store.close()
      for call in StoreCall<Store>.takingInvalidKeys + StoreCall<Store>.senseless {
        try await expectRefusal("\(call.name) after closing", of: { try await call.run(store) })
      }
      guard !trial.lacking.contains(.persistence) else { return }
      try await expect(
        "everything after opening", trial.open(), holds: [("a", SampleValue(key: "a")), ("b", SampleValue(key: "b"))])
    }
    add(116, "b", "on a closed store a cancelled task is told that it is closed", in: .lifecycle, checks: .lifecycle) {
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
      try expect("whether closing came back while an update was running", closing.cameBackEarly, equals: false)
      try await closing.end()
      try await expect("an operation after closing", throws: .closed) { try await store.count() }
      guard !trial.lacking.contains(.persistence) else { return }
      try await expect("everything after opening", trial.open(), holds: [("a", SampleValue("updated"))])
    }
    add(
      117, "a", "what meets closing while it waits completes or is refused, whatever it is", in: .lifecycle,
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
        // Every second call has begun before closing, the others begin while it waits.
        start(calls.enumerated().filter { $0.offset.isMultiple(of: 2) }.map(\.element))
        closing.begin()
        start(calls.enumerated().filter { !$0.offset.isMultiple(of: 2) }.map(\.element))
        _ = begun.wait(timeout: .now() + .seconds(2))
        slot = SampleValue("updated")
      }
      try expect("whether closing came back while an update was running", closing.cameBackEarly, equals: false)
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
          "what \(call.name) was to write, \(isDone ? "and did" : "but was refused")", reopened.value(forKey: key),
          equals: isDone ? value : call.valueBefore)
      }
      try await expect("what the update wrote", reopened.value(forKey: "updated"), equals: SampleValue("updated"))
    }
    add(
      117, "b", "closing waits for an operation that is encoding or decoding", in: .lifecycle, checks: .lifecycle,
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
          // A store that remembers values may have nothing to encode or decode yet. It must not do so during the next call.
          try await store.close()
          continue
        }
        try await closing.end()
        try expect(
          "whether closing came back while \(call.name) was running, which then completed",
          closing.cameBackEarly && completes, equals: false)
      }
    }
  }
}

/// Runs an operation that may be refused since the store is closing or closed.
///
/// - Returns: Whether it was done.
private func isCompleted(_ operation: () async throws -> Void) async throws -> Bool {
  do {
    try await operation()
    return true
  } catch StoreError.Code.closed {
    return false
  }
}

/// Throws a ``Mismatch`` unless a closed store refuses an operation, for being closed or for its arguments.
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
    subject: subject, expected: "a StoreError with the code closed, or that of a bad argument", got: got,
    place: "\(file):\(line)")
}
