import Larder

extension CaseList {
  /// What a store that has maintenance promises of it; one that has none passes.
  mutating func addMaintenanceCases() {
    add(
      243, "", "maintenance counts rightly, finds no damage where none is, and loses nothing", in: .lifecycle,
      checks: .isolation
    ) { trial in
      var entries: [(StoreKey, SampleValue?)] = [
        ("a", SampleValue(key: "a")), ("b", nil), ("c", SampleValue(key: "c")),
      ]
      var store = try await trial.open(with: entries)
      try await expect("everything", store, holds: entries)
      for round in 0..<2 {
        guard let maintenance = store.information.maintenance else { return }
        try await expectUnlessUnsupported {
          try await expect(
            "the number of entries in the statistics", maintenance.statistics().entryCount, equals: entries.count)
        }
        try await expectUnlessUnsupported {
          let report = try await maintenance.verify()
          try expect("the number of entries in the report", report.entryCount, equals: entries.count)
          try expect("the findings in a sound store", report.findings.map(\.message), equals: [])
        }
        try await expectUnlessUnsupported { try await maintenance.compact() }
        try await expect("everything after compacting", store, holds: entries)
        try await store.apply([.remove("a"), .set("d\(round)", SampleValue("new"))])
        entries = entries.filter { $0.0 != "a" } + [(StoreKey("d\(round)"), SampleValue("new"))]
        try await expectUnlessUnsupported { try await maintenance.compact() }
        store = try await trial.settled(store)
        try await expect("everything when settled", store, holds: entries)
      }
    }
    add(243, "a", "the maintenance of a closed store is refused", in: .lifecycle, checks: .lifecycle) { trial in
      let store = try await trial.open(withKeys: ["a"])
      let maintenance = store.information.maintenance
      try await store.close()
      try await expect("an operation after closing", throws: .closed) { try await store.count() }
      guard let maintenance else { return }
      let calls: [(String, () async throws -> Void)] = [
        ("statistics", { _ = try await maintenance.statistics() }), ("verify", { _ = try await maintenance.verify() }),
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
      244, "", "a verification finds the entry that cannot be decoded, and no other", in: .damage, checks: .isolation,
      needs: .encoding
    ) { trial in
      let store = try await trial.open(withKeys: ["a", "z"])
      try await store.setValue(.undecodable(), forKey: "damaged")
      let settled = try await trial.settled(store)
      try await expect("its value", throws: .corrupted, key: "damaged") { try await settled.value(forKey: "damaged") }
      guard let maintenance = settled.information.maintenance else { return }
      try await expectUnlessUnsupported {
        try await expect("the keys that it finds", maintenance.verify().findings.map(\.key), equals: ["damaged"])
      }
    }
  }
}

/// Runs a check of something that a kind of store may not support.
private func expectUnlessUnsupported(_ check: () async throws -> Void) async throws {
  do {
    try await check()
  } catch StoreError.Code.unsupported {
    return
  }
}
