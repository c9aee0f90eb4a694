import Larder

extension CaseList {
  mutating func addCancellationCases() {
    begin(.cancellation, checking: .cancellation)
    add(
      "123", "a write in a cancelled task throws CancellationError and changes nothing", keys: ["a", "b"]
    ) { store, trial in
      for call in StoreCall<Store>.changing {
        try await expectCancellation(of: call.name) { try await inCancelledTask { try await call.run(store) } }
        try await expect(store, holds: Entries(keys: ["a", "b"]), "after \(call.name)")
      }
      try await expect(trial.settled(store), holds: Entries(keys: ["a", "b"]), "reopened if persistent")
    }
    add("236", "the body of an update does not run in a cancelled task", keys: ["a"]) { store, _ in
      let runs = Tally()
      try await expectCancellation(of: "the update") {
        try await inCancelledTask { try await store.update("a") { _ in runs.add() } }
      }
      try expect("the number of runs of the body", runs.count, equals: 0)
    }
    add("237", "synchronizing and closing ignore cancellation", keys: ["a"]) { store, trial in
      try await inCancelledTask { try await store.synchronize() }
      try await expect(store, holds: Entries(keys: ["a"]))
      try await inCancelledTask { try await store.close() }
      try await expect("an operation on the closed store", throws: .closed) { try await store.count() }
      try await trial.expectReopened(holds: Entries(keys: ["a"]))
    }
    add(
      "236a",
      "an update whose task is cancelled while it runs takes effect, or throws CancellationError and changes nothing",
      keys: ["a"]
    ) { store, trial in
      let outcome = await Task {
        try await store.update("a") { slot in
          withUnsafeCurrentTask { $0?.cancel() }
          slot = "updated"
        }
      }.result
      var expected: Entries = ["a": "updated"]
      if case .failure(let error) = outcome {
        try expect("whether the error is CancellationError", error is CancellationError, equals: true)
        expected = Entries(keys: ["a"])
      }
      try await expect(store, keeps: expected, in: trial)
    }
    add("238", "a task that is cancelled while it writes never writes part of a batch") { trial in
      var store = try await trial.open()
      let open = store
      let hasWritten = Flag()
      let returned = Locked<Int64>(0)
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
