import Larder

extension CaseList {
  mutating func addLifecycleCases() {
    begin(.lifecycle, checking: .lifecycle)
    add("116", "a closed store refuses every operation", keys: ["a", "b"]) { store, _ in
      try await store.close()
      try await expect(store, refuses: StoreCall.all, with: .closed)
    }
    add("121", "closing again is a no-op", keys: ["a"]) { store, _ in
      for _ in 0..<3 { try await store.close() }
      try await concurrently(8) { _ in try await store.close() }
      try await expect("an operation on the closed store", throws: .closed) { try await store.count() }
    }
    add("226", "operations that run during closing either complete or are refused", keys: ["start"]) { store, trial in
      let written = try await withThrowingTaskGroup(of: [StoreKey].self) { group in
        for task in 0..<6 {
          group.addTask {
            var written: [StoreKey] = []
            do {
              for step in 0..<200 {
                let key = StoreKey("\(task).\(step)")
                try await store.setValue(SampleValue(key: key), forKey: key)
                written.append(key)
                _ = try await store.value(forKey: "start")
              }
            } catch StoreError.Code.closed {
              return written
            }
            return written
          }
        }
        group.addTask {
          for _ in 0..<20 { await Task.yield() }
          try await store.close()
          return []
        }
        return try await group.reduce(into: []) { $0 += $1 }
      }
      try await expect("a write on the closed store", throws: .closed) { try await store.setValue(nil, forKey: "x") }
      try await expect("an operation on the closed store", throws: .closed) { try await store.contains("start") }
      // A refused write must not have taken effect.
      try await trial.expectReopened(holds: Entries(keys: written + ["start"]))
    }
    add("227", "synchronizing has no visible effect", keys: [], checks: .durability) { store, _ in
      try await store.synchronize()
      try await store.apply([.set("a", "a"), .set("b", nil)])
      try await store.synchronize()
      try await store.synchronize()
      try await expect(store, holds: ["a": "a", "b": nil])
      try await store.removeValue(forKey: "b")
      try await expect(store, holds: ["a": "a"], "after writing again")
    }
    add("228", "stores at different locations are independent", keys: ["a"]) { store, trial in
      let other = try await trial.openElsewhere()
      try await expect(other, holds: [:], "of the other store")
      try await other.setValue("other", forKey: "b")
      try await other.close()
      try await expect(store, holds: Entries(keys: ["a"]))
    }
  }

  /// Adds the cases about maintenance, which a store without maintenance passes.
  mutating func addMaintenanceCases() {
    begin(.lifecycle, checking: .lifecycle)
    add(
      "243", "maintenance counts correctly, reports no damage in an undamaged store, and loses no entry",
      checks: .isolation
    ) { trial in
      var entries: Entries = ["a": "a", "b": nil, "c": "c"]
      var store = try await trial.open(with: entries)
      try await expect(store, holds: entries)
      for round in 0..<2 {
        guard let maintenance = AnyDataStore(store).maintenance else { return }
        try await unlessUnsupported {
          try await expect(
            "the number of entries in the statistics", maintenance.storeStatistics().entryCount, equals: entries.count)
        }
        try await unlessUnsupported {
          let report = try await maintenance.verify()
          try expect("the number of entries in the report", report.entryCount, equals: entries.count)
          try expect("the findings in an undamaged store", report.findings.map(\.message), equals: [])
        }
        try await unlessUnsupported { try await maintenance.compact() }
        try await expect(store, holds: entries, "after compacting")
        let changes: [BatchChange<SampleValue?>] = [.remove("a"), .set(StoreKey("d\(round)"), "new")]
        try await store.apply(ChangeBatch(changes))
        for change in changes { change.apply(to: &entries) }
        try await unlessUnsupported { try await maintenance.compact() }
        store = try await trial.settled(store)
        try await expect(store, holds: entries, "reopened if persistent")
      }
    }
    add("243a", "a closed store refuses maintenance", keys: ["a"]) { store, trial in
      let maintenance = AnyDataStore(store).maintenance
      try await store.close()
      try await expect("an operation on the closed store", throws: .closed) { try await store.count() }
      guard let maintenance else { return }
      let calls: [(String, () async throws -> Void)] = [
        ("statistics", { _ = try await maintenance.storeStatistics() }),
        ("verify", { _ = try await maintenance.verify() }),
        ("compact", { try await maintenance.compact() }),
        ("backup", { try await maintenance.backup(to: trial.location.path("copy")) }),
      ]
      for (name, call) in calls {
        try await expect("\(name) after closing", throws: .closed, by: call)
      }
    }
    begin(.damage, checking: .isolation)
    add(
      "244", "verification reports the entry that cannot be decoded, and no other", keys: ["a", "z"], needs: .encoding
    ) { store, trial in
      try await store.setValue(.undecodable(), forKey: "damaged")
      let settled = try await trial.settled(store)
      try await expect("the value of the damaged entry", throws: .corrupted, key: "damaged") {
        try await settled.value(forKey: "damaged")
      }
      guard let maintenance = AnyDataStore(settled).maintenance else { return }
      try await unlessUnsupported {
        try await expect("the keys in the findings", maintenance.verify().findings.map(\.key), equals: ["damaged"])
      }
    }
  }
}

/// Runs an operation that a store need not support.
private func unlessUnsupported(_ operation: () async throws -> Void) async throws {
  do {
    try await operation()
  } catch StoreError.Code.unsupported {
    return
  }
}
