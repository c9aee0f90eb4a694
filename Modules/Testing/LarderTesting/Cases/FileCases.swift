import Larder

extension CaseList {
  /// Adds the cases about stores with files: read-only access, files that are replaced while open, and concurrent
  /// creation.
  mutating func addFileCases() {
    addReadOnlyCases()
    addReplacementCases()
    addCreationCase()
  }

  private mutating func addCreationCase() {
    add(
      248, "", "concurrent openings that create a store end with one store, and fail only with locked",
      in: .lifecycle, checks: .lifecycle, needs: .persistence
    ) { trial in
      for _ in 0..<4 {
        let location = try trial.anotherLocation()
        let stores = try await withThrowingTaskGroup(of: Store?.self) { group in
          for _ in 0..<4 {
            group.addTask {
              do {
                return try await trial.open(at: location)
              } catch StoreError.Code.locked {
                return nil
              }
            }
          }
          return try await group.reduce(into: [Store]()) { stores, store in
            if let store { stores.append(store) }
          }
        }
        guard let first = stores.first else {
          throw Mismatch(
            subject: "four concurrent openings that create a store", expected: "at least one store",
            got: "four errors with code locked",
            place: "\(#fileID):\(#line)")
        }
        let most = first.information.sharing == .exclusive ? 1 : 4
        try expect(
          "the number of open stores", stores.count <= most, expected: "at most \(most)", got: "\(stores.count)")
        for (number, store) in stores.enumerated() {
          try await store.setValue(SampleValue("\(number)"), forKey: StoreKey(integer: number))
        }
        for store in stores { try await store.close() }
        try await expect(
          "the contents after reopening", trial.open(at: location),
          holds: stores.indices.map { (StoreKey(integer: $0), SampleValue("\($0)")) })
      }
    }
  }

  private mutating func addReadOnlyCases() {
    add(
      245, "", "a read-only store returns all entries, refuses every write and changes no file",
      in: .reopening,
      checks: .badInput, needs: [.persistence, .readOnlyAccess]
    ) { trial in
      let entries: [(StoreKey, SampleValue?)] = [("a", SampleValue(key: "a")), ("b", nil)]
      try await trial.open(with: entries).close()
      let files = try trial.location.fileStates()
      let store = try await trial.openForReading()
      try expect("the access in the store's information", store.information.access, equals: .readOnly)
      try await expect("the contents", store, holds: entries)
      for call in StoreCall<Store>.writing {
        try await expect("\(call.name) on a read-only store", throws: .notPermitted) {
          try await call.run(store)
        }
      }
      try await store.synchronize()
      try await expect("the contents after the refused writes", store, holds: entries)
      try await store.close()
      try expect("the files after closing the reader", trial.location.fileStates(), equals: files)
      try await expect("the contents after reopening for writing", trial.open(), holds: entries)
    }
    add(
      245, "a", "opening a missing store read-only throws notFound and creates nothing", in: .reopening,
      checks: .badInput,
      needs: [.persistence, .readOnlyAccess]
    ) { trial in
      try await expect("opening a missing store read-only", throws: .notFound) {
        try await trial.openForReading()
      }
      try expect("the files that were created", trial.location.fileStates().map(\.name), equals: [])
    }
    add(
      245, "b", "an exclusive store refuses a reader beside a writer, and admits several readers", in: .reopening,
      checks: .lifecycle, needs: [.persistence, .readOnlyAccess]
    ) { trial in
      let writer = try await trial.open(withKeys: ["a"])
      switch writer.information.sharing {
      case .exclusive:
        try await expect("opening read-only while a writer is open", throws: .locked) {
          try await trial.openForReading()
        }
        try await writer.close()
        let reader = try await trial.openForReading()
        try await expect("opening for writing while a reader is open", throws: .locked) { try await trial.open() }
        let second = try await trial.openForReading()
        try await expect("the contents in a second reader", second, holds: [("a", SampleValue(key: "a"))])
        try await reader.close()
        try await second.close()
        try await trial.open().setValue(nil, forKey: "a")
      case .betweenProcesses:
        // A store need not support opening the same files twice with different access in one process.
        try await writer.close()
        let reader = try await trial.openForReading()
        try await expect("the contents", reader, holds: [("a", SampleValue(key: "a"))])
      }
    }
    add(
      245, "c", "a reader of the files of an open store sees every write that has returned",
      in: .reopening, checks: .durability, needs: [.persistence, .acknowledgedPersistence, .readOnlyAccess]
    ) { trial in
      let store = try await trial.open(withKeys: ["a"])
      try await store.apply([.set("b", nil), .remove("a")])
      try await expect("the contents of the store", store, holds: [("b", nil)])
      guard let copy = try await trial.openCopy(for: .readOnly) else { return }
      try await expect("the contents of a copy of the files", copy, holds: [("b", nil)])
    }
  }

  private mutating func addReplacementCases() {
    add(
      246, "", "a store whose files were moved away does not write into the files of the store that replaced it",
      in: .lifecycle, checks: .lifecycle, needs: .persistence
    ) { trial in
      let old = try await trial.open(withKeys: ["a"])
      try await expect("the initial contents", old, holds: [("a", SampleValue(key: "a"))])
      guard let aside = try trial.moveFilesAside() else { return }
      let new = try await trial.open(withKeys: ["b"])
      try await expectStaleWritesRefused("every file was moved and another store was opened", old)
      try await closeDespiteConflict(old)
      try await expect("the contents of the store that replaced it", new, holds: [("b", SampleValue(key: "b"))])
      try await expect(
        "the contents of the store that replaced it, reopened", trial.settled(new),
        holds: [("b", SampleValue(key: "b"))])
      // The moved files contain the writes that were acknowledged before.
      try await expect(
        "the contents of the moved files", trial.open(at: aside), holds: [("a", SampleValue(key: "a"))])
    }
    add(
      246, "a", "a write that returns after any one file was moved away is kept, and the files have one owner",
      in: .lifecycle, checks: .lifecycle, needs: .persistence
    ) { trial in
      let example = try await trial.open(withKeys: ["a"])
      try await expect("the initial contents", example, holds: [("a", SampleValue(key: "a"))])
      for name in try trial.location.fileNames() {
        let location = try trial.anotherLocation()
        let store = try await trial.open(at: location)
        try await store.setValue(SampleValue("before"), forKey: "a")
        guard try location.hide(name) else { continue }
        let second = try await openedUnlessRefused(location, of: trial)
        do {
          try await store.setValue(SampleValue("after"), forKey: "b")
          try await store.synchronize()
          try expect(
            "the number of stores that own the files after \(name) was moved away", second == nil, expected: "one",
            got: "two")
          try await store.close()
          try location.restoreUnlessReplaced(name)
          try await expect(
            "the contents after \(name) was moved away", trial.open(at: location),
            holds: [("a", SampleValue("before")), ("b", SampleValue("after"))])
        } catch let error as StoreError where error.code == .conflict || error.code == .locked {
          try await closeDespiteConflict(store)
          // In the same process, the second store may use the same files.
          if let second { try await closeDespiteConflict(second) }
        }
      }
    }
  }
}

/// Opens a second store with the same files, as another process might.
///
/// - Returns: The store, or `nil` if opening it is refused.
private func openedUnlessRefused<Store>(_ location: ConformanceLocation, of trial: Trial<Store>) async throws -> Store?
{
  do {
    return try await trial.open(at: location)
  } catch is StoreError {
    return nil
  }
}

/// Throws a ``Mismatch`` unless every write is refused, or the synchronization after it.
private func expectStaleWritesRefused<Store: DataStore>(_ situation: String, _ store: Store) async throws
where Store.Value == SampleValue? {
  for call in StoreCall<Store>.changing {
    do {
      try await call.run(store)
      try await store.synchronize()
    } catch let error as StoreError where error.code == .conflict || error.code == .locked {
      continue
    }
    throw Mismatch(
      subject: "\(call.name) after \(situation)", expected: "a StoreError with code conflict or locked",
      got: "no error", place: "\(#fileID):\(#line)")
  }
}

/// Closes a store, which may report again that its files were replaced.
private func closeDespiteConflict(_ store: some DataStore) async throws {
  do {
    try await store.close()
  } catch let error as StoreError where error.code == .conflict || error.code == .locked {
    return
  }
}
