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
        try await expect("everything after \(call.name)", store, holds: before)
      }
      store = try await trial.settled(store)
      try await expect("everything when settled", store, holds: before)
    }
    add(236, "", "the body of an update does not run in a cancelled task", in: .cancellation, checks: .cancellation) {
      trial in
      let store = try await trial.open(withKeys: ["a"])
      let runs = Tally()
      try await expectCancellation("the update") {
        try await inCancelledTask { try await store.update("a") { _ in runs.add() } }
      }
      try expect("how often the body ran", runs.count, equals: 0)
    }
    add(237, "", "synchronizing and closing ignore cancellation", in: .cancellation, checks: .cancellation) { trial in
      let store = try await trial.open(withKeys: ["a"])
      try await inCancelledTask { try await store.synchronize() }
      try await expect("everything", store, holds: [("a", SampleValue(key: "a"))])
      try await inCancelledTask { try await store.close() }
      try await expect("an operation after closing", throws: .closed) { try await store.count() }
      guard !trial.lacking.contains(.persistence) else { return }
      try await expect("everything after opening", trial.open(), holds: [("a", SampleValue(key: "a"))])
    }
    add(
      236, "a", "an update whose task is cancelled in its midst takes effect, or says that it did not",
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
      try await expect("the value when settled", trial.settled(store).value(forKey: "a"), equals: expected)
    }
    add(
      238, "", "a task that is cancelled while it writes writes whole batches", in: .cancellation, checks: .cancellation
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
        try expect("whether the error of the writer is CancellationError", error is CancellationError, equals: true)
      }
      for moment in ["afterwards", "when settled"] {
        let values = try await store.values(forKeys: ["a", "b", "c"])
        try expect("whether anything was written, \(moment)", values[0] != nil, equals: true)
        try expect("the three values, \(moment)", values, equals: [values[0], values[0], values[0]])
        // A write that ends with CancellationError has not begun.
        try expect("the last round, \(moment)", values[0]??.integer, equals: returned.withLock { $0 })
        store = try await trial.settled(store)
      }
    }
  }
}
