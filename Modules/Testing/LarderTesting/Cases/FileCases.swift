import Larder

extension CaseList {
  /// Adds the cases about stores with files: read-only access, files that are replaced while open, and concurrent
  /// creation.
  mutating func addFileCases() {
    addReadOnlyCases()
    begin(.lifecycle, checking: .lifecycle)
    addReplacementCases()
    add(
      "248", "concurrent openings that create a store end with one store, and fail only with locked",
      needs: [.persistence, .ownFiles]
    ) { trial in
      for _ in 0..<4 {
        let location = try trial.anotherLocation()
        let opened = Locked<[Store]>([])
        try await concurrently(4) { _ in
          guard let store = try await trial.openUnlessRefused(at: location, with: [.locked]) else { return }
          opened.withLock { $0.append(store) }
        }
        let stores = opened.withLock { $0 }
        let most = stores.first?.information.sharing == .exclusive ? 1 : 4
        try expect(
          "the number of stores after four concurrent openings", (1...most).contains(stores.count),
          expected: "1 to \(most)", got: "\(stores.count)")
        var entries: Entries = [:]
        for (number, store) in stores.enumerated() {
          try await store.setValue(SampleValue("\(number)"), forKey: StoreKey(integer: number))
          entries[StoreKey(integer: number)] = SampleValue("\(number)")
        }
        for store in stores { try await store.close() }
        try await expect(trial.open(at: location), holds: entries, "after reopening")
      }
    }
  }

  private mutating func addReadOnlyCases() {
    begin(.reopening, checking: .badInput)
    add(
      "245", "a read-only store returns all entries, refuses every write and changes no file",
      needs: [.persistence, .readOnlyAccess, .ownFiles]
    ) { trial in
      let entries: Entries = ["a": "a", "b": nil]
      try await trial.open(with: entries).close()
      let files = try trial.location.fileStates()
      let store = try await trial.open(for: .readOnly)
      try expect("the access in the store's information", store.information.access, equals: .readOnly)
      try await expect(store, holds: entries)
      try await expect(store, refuses: StoreCall.writing, with: .notPermitted)
      try await store.synchronize()
      try await expect(store, holds: entries, "after the refused writes")
      try await store.close()
      try expect("the files after closing the reader", trial.location.fileStates(), equals: files)
      try await expect(trial.open(), holds: entries, "after reopening for writing")
    }
    add(
      "245a", "opening a missing store read-only throws notFound and creates nothing",
      needs: [.persistence, .readOnlyAccess, .ownFiles]
    ) { trial in
      try await expect("opening a missing store read-only", throws: .notFound) { try await trial.open(for: .readOnly) }
      try expect("the files that were created", trial.location.fileStates().map(\.name), equals: [])
    }
    add(
      "245b", "an exclusive store refuses a reader beside a writer, and admits several readers",
      checks: .lifecycle, needs: [.persistence, .readOnlyAccess]
    ) { trial in
      let writer = try await trial.open(with: Entries(keys: ["a"]))
      let isExclusive = writer.information.sharing == .exclusive
      if isExclusive {
        try await expect("opening read-only while a writer is open", throws: .locked) {
          try await trial.open(for: .readOnly)
        }
      }
      try await writer.close()
      let reader = try await trial.open(for: .readOnly)
      try await expect(reader, holds: Entries(keys: ["a"]), "in a reader")
      // A shared store need not support opening the same files twice with different access in one process.
      guard isExclusive else { return }
      try await expect("opening for writing while a reader is open", throws: .locked) { try await trial.open() }
      let second = try await trial.open(for: .readOnly)
      try await expect(second, holds: Entries(keys: ["a"]), "in a second reader")
      try await reader.close()
      try await second.close()
      try await trial.open().setValue(nil, forKey: "a")
    }
    add(
      "245c", "a reader of the files of an open store sees every write that has returned",
      checks: .durability, needs: [.persistence, .acknowledgedPersistence, .readOnlyAccess]
    ) { trial in
      let store = try await trial.open(with: Entries(keys: ["a"]))
      try await store.apply([.set("b", nil), .remove("a")])
      try await expect(store, holds: ["b": nil])
      guard let copy = try trial.copyOfFiles() else { return }
      try await expect(trial.open(at: copy, for: .readOnly), holds: ["b": nil], "of a copy of the files")
    }
  }

  private mutating func addReplacementCases() {
    add(
      "246", "a store whose files were moved away does not write into the files of the store that replaced it",
      checks: .durability, needs: [.persistence, .ownFiles]
    ) { trial in
      let old = try await trial.open(with: Entries(keys: ["a"]))
      try await expect(old, holds: Entries(keys: ["a"]), "initially")
      guard try !trial.location.fileNames().isEmpty else { return }
      let aside = try trial.anotherLocation()
      try trial.location.moveFiles(to: aside)
      let new = try await trial.open(with: Entries(keys: ["b"]))
      for call in StoreCall<Store>.changing {
        try await expect(
          "\(call.name) after another store replaced the files", throws: "a StoreError with code conflict or locked",
          where: { StaleFiles($0) }
        ) {
          try await call.run(old)
          try await old.synchronize()
        }
      }
      try await closeDespiteConflict(old)
      try await expect(new, keeps: Entries(keys: ["b"]), in: trial, "of the store that replaced it")
      // The moved files contain the writes that were acknowledged before.
      try await expect(trial.open(at: aside), holds: Entries(keys: ["a"]), "of the moved files")
    }
    add(
      "246a", "a write that returns after any one file was moved away is kept, and the files have one owner",
      checks: .durability, needs: [.persistence, .ownFiles]
    ) { trial in
      let example = try await trial.open(with: Entries(keys: ["a"]))
      try await expect(example, holds: Entries(keys: ["a"]), "initially")
      for name in try trial.location.fileNames() {
        let location = try trial.anotherLocation()
        let store = try await trial.open(at: location)
        try await store.setValue("before", forKey: "a")
        guard try location.hide(name) else { continue }
        let second = try await trial.openUnlessRefused(at: location)
        do {
          try await store.setValue("after", forKey: "b")
          try await store.synchronize()
          try expect(
            "whether two stores own the files after \(name) was moved away", second != nil, equals: false)
          try await store.close()
          try location.restoreUnlessReplaced(name)
          try await expect(
            trial.open(at: location), holds: ["a": "before", "b": "after"], "after \(name) was moved away")
        } catch {
          guard StaleFiles(error) != nil else { throw error }
          try await closeDespiteConflict(store)
          // In the same process, the second store may use the same files.
          if let second { try await closeDespiteConflict(second) }
        }
      }
    }
  }
}

/// An error that reports that the files of a store were replaced.
private struct StaleFiles: Error {
  init?(_ error: any Error) {
    guard let code = (error as? StoreError)?.code, code == .conflict || code == .locked else { return nil }
  }
}

/// Closes a store, which may report again that its files were replaced.
private func closeDespiteConflict(_ store: some DataStore) async throws {
  do {
    try await store.close()
  } catch {
    guard StaleFiles(error) != nil else { throw error }
  }
}
