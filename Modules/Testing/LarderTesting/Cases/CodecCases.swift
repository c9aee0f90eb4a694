import Larder

/// Cases that open the store with codecs of their own, to see whether the store keeps the promises that codecs rely on.
extension CaseList {
  mutating func addCodecCases() {
    begin(.values, checking: .values)
    addProbe("280", "the codec learns the key of each entry, in every operation") { trial, control in
      let store = try await trial.open()
      try await store.apply([.set("a", "1"), .set("b", "2")])
      try await store.update(["c", "d"]) { $0.assign(["3", nil]) }
      let settled = try await trial.settled(store)
      try await expect(settled, holds: ["a": "1", "b": "2", "c": "3"])
      try await settled.update("b") { $0 = "4" }
      try await expect(trial.settled(settled), holds: ["a": "1", "b": "4", "c": "3"])
      try expect("whether the codec ever learned no key", control.hasMissedAKey, equals: false)
      let nonces = Set((["a", "b", "c"] as [StoreKey]).compactMap { control.nonce(of: $0) })
      try expect("the number of different encodings of three values", nonces.count, equals: 3)
    }
    addProbe("281", "a value that was moved to another key is damage there", checks: .isolation, needs: .persistence) {
      trial, control in
      let store = try await trial.open()
      control.misplacement = UInt8(ascii: "a")
      try await store.apply([.set("a", "own"), .set("b", "moved")])
      let settled = try await trial.settled(store)
      control.misplacement = nil
      try await expect("the value in its place", settled.value(forKey: "a"), equals: "own")
      try await expectFailures(of: settled, with: .corrupted, key: "b")
    }
    addProbe("282", "an update that assigns equal values writes no other bytes", checks: .updates) { trial, control in
      let store = try await trial.open()
      try await store.apply([.set("a", "1"), .set("b", nil)])
      let first = try await trial.settled(store)
      _ = try await first.values(forKeys: ["a", "b"])
      let before = (control.nonce(of: "a"), control.nonce(of: "b"))
      try expect("whether both values were decoded with their keys", before.0 != nil && before.1 != nil, equals: true)
      try await first.update(["a", "b"]) { $0.assign(["1", .some(nil)]) }
      try await first.update("a") { _ in }
      let second = try await trial.settled(first)
      _ = try await second.values(forKeys: ["a", "b"])
      try expect("whether the bytes of the first value are unchanged", control.nonce(of: "a") == before.0, equals: true)
      try expect(
        "whether the bytes of the second value are unchanged", control.nonce(of: "b") == before.1, equals: true)
    }
    addErrorCodeCases()
    addRecordCases()
    addProbe("287", "the store says how its values are kept", checks: .errors) { trial, _ in
      let information = try await trial.open().information
      try expect("the values at rest with an encrypting codec", information.valuesAtRest, equals: .encrypted)
      try expect("whether it says how long entries stay", information.entryLifetime != nil, equals: true)
      try expect("whether it says if reads may be copies", information.readsMayBeCopies != nil, equals: true)
    }
  }

  /// Adds the cases about the codes of errors of a codec.
  private mutating func addErrorCodeCases() {
    let context = DecodingError.Context(codingPath: [], debugDescription: "a probe")
    let failures: [(id: String, name: String, error: any Error, code: StoreError.Code)] = [
      ("283a", "`DecodingError.dataCorrupted`", DecodingError.dataCorrupted(context), .corrupted),
      ("283b", "another `DecodingError`", DecodingError.typeMismatch(Int.self, context), .undecodable),
      ("283c", "an error of no known type", SampleValue.Refusal.decoding, .corrupted),
      ("283d", "a newer version", ProbeCodec.CodedFailure(storeErrorCode: .versionMismatch), .versionMismatch),
      (
        "283e", "a missing key of encryption", ProbeCodec.CodedFailure(storeErrorCode: .keyUnavailable), .keyUnavailable
      ),
    ]
    for (id, name, error, code) in failures {
      addProbe(
        id, "\(name) while decoding has the code \(code), and nothing is lost", checks: .isolation, needs: .persistence
      ) { trial, control in
        let store = try await trial.open()
        try await store.apply([.set("b", "2")])
        let settled = try await trial.settled(store)
        control.decodingFailure = error
        try await expectFailures(of: settled, with: code, key: "b")
        control.decodingFailure = nil
        try await expect(settled, holds: ["b": "2"], "when decoding works again")
      }
    }
    addProbe(
      "284", "a missing key while encoding has the code keyUnavailable, and nothing changes", checks: .errors,
      needs: .immediateRefusal
    ) { trial, control in
      let store = try await trial.open()
      try await store.apply([.set("a", "1")])
      control.encodingFailure = ProbeCodec.CodedFailure(storeErrorCode: .keyUnavailable)
      for call in StoreCall<Store>.storing("2", forKey: "a") {
        let error = try await expect(call.name, throws: .keyUnavailable, key: "a") { try await call.run(store) }
        try expect("whether a retry of \(call.name) can help", error.isRetryable, equals: true)
      }
      control.encodingFailure = nil
      try await expect(trial.settled(store), holds: ["a": "1"])
    }
  }

  /// Adds the cases about the record of the codec.
  private mutating func addRecordCases() {
    addProbe(
      "285", "the store refuses another codec than that of its entries", checks: .badInput,
      needs: [.persistence, .recordedCodecs]
    ) {
      trial, control in
      let store = try await trial.open()
      try await store.apply([.set("a", "1")])
      try await store.close()
      try await expect("opening with another codec", throws: .versionMismatch) {
        try await trial.open(codec: ProbeCodec(name: "other", control))
      }
      try await expect(trial.open(codec: ProbeCodec(control)), holds: ["a": "1"])
    }
    addProbe(
      "286a", "the store refuses a program with an older version of its values", checks: .badInput,
      needs: [.persistence, .recordedCodecs]
    ) {
      trial, control in
      let (old, new) = try versions(of: ProbeCodec(control))
      let store = try await trial.open(codec: old)
      try await store.apply([.set("a", "1")])
      try await store.close()
      let newer = try await trial.open(codec: new)
      try await newer.apply([.set("b", "2")])
      try await expect(newer, holds: ["a": "1", "b": "2"])
      try await newer.close()
      try await expect("opening with the older version", throws: .versionMismatch) {
        try await trial.open(codec: old)
      }
      try await expect(trial.open(codec: new), holds: ["a": "1", "b": "2"])
    }
    addProbe(
      "286b", "an open store of an older program can write no more", checks: .badInput,
      needs: [.persistence, .recordedCodecs, .immediateRefusal]
    ) {
      trial, control in
      let (old, new) = try versions(of: ProbeCodec(control))
      let older = try await trial.open(codec: old)
      try await older.apply([.set("a", "1")])
      if older.information.sharing == .exclusive {
        try await expect("opening beside the older program", throws: .locked) { try await trial.open(codec: new) }
        return
      }
      let newer = try await trial.open(codec: new)
      try await newer.apply([.set("b", "2")])
      for call in StoreCall<Store>.storing("3", forKey: "b") {
        try await expect("\(call.name) of the older program", throws: .versionMismatch) { try await call.run(older) }
      }
      try await expect(newer, holds: ["a": "1", "b": "2"])
    }
  }

  /// Adds a case that opens its store with a codec that it controls.
  private mutating func addProbe(
    _ id: String, _ name: String, checks promise: ConformancePromise? = nil, needs: StoreCapabilities = [],
    file: String = #fileID, line: Int = #line,
    _ body: @escaping @Sendable (Trial<Store>, ProbeCodec.Control) async throws -> Void
  ) {
    add(id, name, checks: promise, needs: needs.union([.codecs, .encoding]), file: file, line: line) { trial in
      let control = ProbeCodec.Control()
      trial.location.codec = ProbeCodec(control)
      try await body(trial, control)
    }
  }
}

/// Returns a codec as a first version and as a second one, which reads both.
private func versions(of codec: ProbeCodec) throws -> (old: any Codec<SampleValue?>, new: any Codec<SampleValue?>) {
  let old = try codec.versioned(1)
  let new = try codec.versioned(2, ValueMigration(from: 1, codec) { $0 })
  return (old, new)
}

/// Throws a ``Mismatch`` unless each way of reading a key throws an error with its key, which says whether a retry can help.
private func expectFailures<Store: DataStore>(
  of store: Store, with code: StoreError.Code, key: StoreKey
) async throws where Store.Value == SampleValue? {
  let reads = [
    StoreCall<Store>("the value", .value) { _ = try await $0.value(forKey: key) },
    StoreCall("the values", .values) { _ = try await $0.values(forKeys: [key, "missing"]) },
    StoreCall("the entries", .entries) { _ = try await $0.entries(in: key..., limit: .max, order: .ascending) },
    StoreCall("an update", .update) { try await $0.update(key) { $0 = "new" } },
  ]
  for read in reads {
    let error = try await expect(read.name, throws: code, key: key) { try await read.run(store) }
    try expect("the outcome in the error of \(read.name)", error.outcome, equals: .nothingChanged)
    try expect(
      "whether a retry of \(read.name) can help", error.isRetryable, equals: code == .keyUnavailable)
  }
}
