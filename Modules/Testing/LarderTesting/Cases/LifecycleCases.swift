import Larder

extension CaseList {
  mutating func addLifecycleCases() {
    addClosingCases()
    add(116, "", "a closed store refuses every operation", in: .lifecycle, checks: .lifecycle) { trial in
      let store = try await trial.open(withKeys: ["a", "b"])
      try await store.close()
      for call in StoreCall<Store>.all {
        try await expect("\(call.name) after closing", throws: .closed) { try await call.run(store) }
      }
    }
    add(121, "", "closing again is a no-op", in: .lifecycle, checks: .lifecycle) { trial in
      let store = try await trial.open(withKeys: ["a"])
      for _ in 0..<3 {
        try await store.close()
      }
      try await withThrowingTaskGroup(of: Void.self) { group in
        for _ in 0..<8 { group.addTask { try await store.close() } }
        try await group.waitForAll()
      }
      try await expect("an operation on the closed store", throws: .closed) { try await store.count() }
    }
    add(
      226, "", "operations that run during closing either complete or are refused", in: .lifecycle, checks: .lifecycle
    ) { trial in
      let store = try await trial.open(withKeys: ["start"])
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
      try await expect("a write on the closed store", throws: .closed) {
        try await store.setValue(SampleValue(key: "refused"), forKey: "refused")
      }
      try await expect("an operation on the closed store", throws: .closed) { try await store.contains("start") }
      guard !trial.lacking.contains(.persistence) else { return }
      let reopened = try await trial.open()
      let found = try await reopened.values(forKeys: written)
      try expect("the values that were written before closing", found, equals: written.map { SampleValue(key: $0) })
      // A refused write must not have taken effect.
      try await expect("the number of entries after reopening", reopened.count(), equals: written.count + 1)
    }
    add(227, "", "synchronizing has no visible effect", in: .lifecycle, checks: .durability) { trial in
      let store = try await trial.open()
      try await store.synchronize()
      try await store.apply([.set("a", SampleValue(key: "a")), .set("b", nil)])
      try await store.synchronize()
      try await store.synchronize()
      try await expect("the contents", store, holds: [("a", SampleValue(key: "a")), ("b", nil)])
      try await store.removeValue(forKey: "b")
      try await expect("the contents after writing again", store, holds: [("a", SampleValue(key: "a"))])
    }
    add(228, "", "stores at different locations are independent", in: .lifecycle, checks: .lifecycle) { trial in
      let store = try await trial.open(withKeys: ["a"])
      let other = try await trial.openElsewhere()
      try await expect("the contents of the other store", other, holds: [])
      try await other.setValue(SampleValue("other"), forKey: "b")
      try await other.close()
      try await expect("the contents of the first store", store, holds: [("a", SampleValue(key: "a"))])
    }
  }
}

extension CaseList {
  /// Adds the cases about maintenance, which a store without maintenance passes.
  mutating func addMaintenanceCases() {
    add(
      243, "", "maintenance counts correctly, reports no damage in an undamaged store, and loses no entry",
      in: .lifecycle,
      checks: .isolation
    ) { trial in
      var entries: [(StoreKey, SampleValue?)] = [
        ("a", SampleValue(key: "a")), ("b", nil), ("c", SampleValue(key: "c")),
      ]
      var store = try await trial.open(with: entries)
      try await expect("the contents", store, holds: entries)
      for round in 0..<2 {
        guard let maintenance = AnyDataStore(store).maintenance else { return }
        try await expectUnlessUnsupported {
          try await expect(
            "the number of entries in the statistics", maintenance.storeStatistics().entryCount, equals: entries.count)
        }
        try await expectUnlessUnsupported {
          let report = try await maintenance.verify()
          try expect("the number of entries in the report", report.entryCount, equals: entries.count)
          try expect("the findings in an undamaged store", report.findings.map(\.message), equals: [])
        }
        try await expectUnlessUnsupported { try await maintenance.compact() }
        try await expect("the contents after compacting", store, holds: entries)
        try await store.apply([.remove("a"), .set("d\(round)", SampleValue("new"))])
        entries = entries.filter { $0.0 != "a" } + [(StoreKey("d\(round)"), SampleValue("new"))]
        try await expectUnlessUnsupported { try await maintenance.compact() }
        store = try await trial.settled(store)
        try await expect("the contents, reopened if persistent", store, holds: entries)
      }
    }
    add(243, "a", "a closed store refuses maintenance", in: .lifecycle, checks: .lifecycle) { trial in
      let store = try await trial.open(withKeys: ["a"])
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
        try await expectUnlessUnsupported {
          _ = try await expect("\(name) after closing", throws: .closed, by: call)
        }
      }
    }
    add(
      244, "", "verification reports the entry that cannot be decoded, and no other", in: .damage, checks: .isolation,
      needs: .encoding
    ) { trial in
      let store = try await trial.open(withKeys: ["a", "z"])
      try await store.setValue(.undecodable(), forKey: "damaged")
      let settled = try await trial.settled(store)
      try await expect("the value of the damaged entry", throws: .corrupted, key: "damaged") {
        try await settled.value(forKey: "damaged")
      }
      guard let maintenance = AnyDataStore(settled).maintenance else { return }
      try await expectUnlessUnsupported {
        try await expect("the keys in the findings", maintenance.verify().findings.map(\.key), equals: ["damaged"])
      }
    }
  }
}

/// Runs a check of an operation that a store need not support.
private func expectUnlessUnsupported(_ check: () async throws -> Void) async throws {
  do {
    try await check()
  } catch StoreError.Code.unsupported {
    return
  }
}
