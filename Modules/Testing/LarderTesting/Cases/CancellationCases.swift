import Larder
import Synchronization

extension CaseList {
  mutating func addCancellationCases() {
    add(
      123, "", "a write in a cancelled task throws CancellationError and changes nothing", in: .cancellation,
      checks: .cancellation
    ) {
      trial in
      var store = try await trial.open(withKeys: ["a", "b"])
      let before: [(StoreKey, SampleValue?)] = [("a", SampleValue(key: "a")), ("b", SampleValue(key: "b"))]
      for call in StoreCall<Store>.changing {
        let open = store
        try await expectCancellation(call.name) {
          try await inCancelledTask { try await call.run(open) }
        }
        try await expect("the contents after \(call.name)", store, holds: before)
      }
      store = try await trial.settled(store)
      try await expect("the contents, reopened if persistent", store, holds: before)
    }
    add(236, "", "the body of an update does not run in a cancelled task", in: .cancellation, checks: .cancellation) {
      trial in
      let store = try await trial.open(withKeys: ["a"])
      let runs = Tally()
      try await expectCancellation("the update") {
        try await inCancelledTask { try await store.update("a") { _ in runs.add() } }
      }
      try expect("the number of runs of the body", runs.count, equals: 0)
    }
    add(237, "", "synchronizing and closing ignore cancellation", in: .cancellation, checks: .cancellation) { trial in
      let store = try await trial.open(withKeys: ["a"])
      try await inCancelledTask { try await store.synchronize() }
      try await expect("the contents", store, holds: [("a", SampleValue(key: "a"))])
      try await inCancelledTask { try await store.close() }
      try await expect("an operation on the closed store", throws: .closed) { try await store.count() }
      guard !trial.lacking.contains(.persistence) else { return }
      try await expect("the contents after reopening", trial.open(), holds: [("a", SampleValue(key: "a"))])
    }
    add(
      236, "a",
      "an update whose task is cancelled while it runs takes effect, or throws CancellationError and changes nothing",
      in: .cancellation,
      checks: .cancellation
    ) { trial in
      let store = try await trial.open(withKeys: ["a"])
      let outcome = await Task {
        try await store.update("a") { slot in
          withUnsafeCurrentTask { $0?.cancel() }
          slot = SampleValue("updated")
        }
      }.result
      let expected: SampleValue
      switch outcome {
      case .success: expected = SampleValue("updated")
      case .failure(let error):
        try expect("whether the error is CancellationError", error is CancellationError, equals: true)
        expected = SampleValue(key: "a")
      }
      try await expect("the value", store.value(forKey: "a"), equals: expected)
      try await expect("the value, reopened if persistent", trial.settled(store).value(forKey: "a"), equals: expected)
    }
    add(
      238, "", "a task that is cancelled while it writes never writes part of a batch", in: .cancellation,
      checks: .cancellation
    ) {
      trial in
      var store = try await trial.open()
      let open = store
      let hasWritten = Flag()
      let returned = Mutex<Int64>(0)
      let task = Task {
        defer { hasWritten.raise() }
        for round in 1...1_000 {
          let value = SampleValue(integer: Int64(round))
          try await open.apply([.set("a", value), .set("b", value), .set("c", value)])
          returned.withLock { $0 = Int64(round) }
          hasWritten.raise()
        }
      }
      while !hasWritten.isRaised { await Task.yield() }
      task.cancel()
      if case .failure(let error) = await task.result {
        try expect("whether the writer's error is CancellationError", error is CancellationError, equals: true)
      }
      for moment in ["after the writes", "reopened if persistent"] {
        let values = try await store.values(forKeys: ["a", "b", "c"])
        try expect("whether an entry was written, \(moment)", values[0] != nil, equals: true)
        try expect("the three values, \(moment)", values, equals: [values[0], values[0], values[0]])
        // A write that throws CancellationError has not started.
        try expect("the last round, \(moment)", values[0]??.integer, equals: returned.withLock { $0 })
        store = try await trial.settled(store)
      }
    }
  }
}
