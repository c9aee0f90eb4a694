import Larder

extension CaseList {
  mutating func addErrorCases() {
    add(
      233, "a", "the error for an invalid key states the operation, store, key and outcome", in: .errors,
      checks: .errors
    ) {
      trial in
      let store = try await trial.open(withKeys: ["a", "b"])
      for key in ["", StoreKey(bytes: Array(repeating: 0x61, count: 512))] {
        for call in StoreCall<Store>.taking(key) {
          let error = try await expect(call.name, throws: .invalidKey, key: key) { try await call.run(store) }
          try expect(error, of: call, on: store)
        }
      }
    }
    add(233, "b", "the error of a closed store states the operation and store", in: .errors, checks: .errors) { trial in
      let store = try await trial.open(withKeys: ["a"])
      try await store.close()
      for call in StoreCall<Store>.all {
        let error = try await expect(call.name, throws: .closed) { try await call.run(store) }
        try expect(error, of: call, on: store)
      }
    }
    add(
      233, "c", "the error for an invalid argument states the operation and store", in: .errors, checks: .errors
    ) {
      trial in
      let store = try await trial.open(withKeys: ["a"])
      for call in StoreCall<Store>.senseless {
        let error = try await expect(call.name, throws: .invalidArgument) { try await call.run(store) }
        try expect(error, of: call, on: store)
      }
    }
    add(
      233, "d", "the error for a value that cannot be encoded states its key and the underlying error", in: .errors,
      checks: .errors, needs: [.encoding, .immediateRefusal]
    ) { trial in
      let store = try await trial.open(withKeys: ["a"])
      let calls: [StoreCall<Store>] = [
        StoreCall("setValue", .apply) { try await $0.setValue(.unencodable(), forKey: "secret") },
        StoreCall("apply", .apply) { try await $0.apply([.set("a", nil), .set("secret", .unencodable())]) },
        StoreCall("update", .update) { try await $0.update("secret") { $0 = .unencodable() } },
      ]
      for call in calls {
        let error = try await expect(call.name, throws: .encodingFailed, key: "secret") { try await call.run(store) }
        try expect(error, of: call, on: store)
        try expect("whether the error of \(call.name) has an underlying error", error.underlying != nil, equals: true)
      }
    }
    add(
      234, "", "an error's description does not show the key, but its detailed description does", in: .errors,
      checks: .errors
    ) {
      trial in
      let store = try await trial.open(withKeys: ["a"])
      let key = StoreKey("secret" + String(repeating: "x", count: 512))
      for call in StoreCall<Store>.taking(key) {
        let error = try await expect(call.name, throws: .invalidKey, key: key) { try await call.run(store) }
        try expect("whether the error's description shows the key", "\(error)".contains("secret"), equals: false)
        try expect(
          "whether the error's detailed description shows the key", error.detailedDescription.contains("secret"),
          equals: true)
      }
    }
    add(
      234, "a", "an error's description never shows the value or its key", in: .errors, checks: .errors,
      needs: [.encoding, .immediateRefusal]
    ) { trial in
      let store = try await trial.open(withKeys: ["a"])
      var errors: [StoreError] = []
      let refused: SampleValue? = .unencodable("hidden")
      errors.append(
        try await expect("setValue", throws: .encodingFailed) { try await store.setValue(refused, forKey: "secret") })
      errors.append(
        try await expect("update", throws: .encodingFailed) { try await store.update("secret") { $0 = refused } })
      try await store.setValue(.undecodable("hidden"), forKey: "secret")
      let settled = try await trial.settled(store)
      for call in [
        StoreCall<Store>("value", .value) { _ = try await $0.value(forKey: "secret") },
        StoreCall("values", .values) { _ = try await $0.values(forKeys: ["a", "secret"]) },
        StoreCall("entries", .entries) { _ = try await $0.entries(in: .all, limit: .max, order: .ascending) },
        StoreCall("update", .update) { try await $0.update("secret") { $0 = nil } },
      ] {
        errors.append(try await expect(call.name, throws: .corrupted, key: "secret") { try await call.run(settled) })
      }
      for error in errors {
        try expect("whether the error's description shows the key", "\(error)".contains("secret"), equals: false)
        try expect("whether the error's description shows the value", "\(error)".contains("hidden"), equals: false)
      }
    }
    add(235, "", "the store has a name, and its errors state it", in: .errors, checks: .errors) { trial in
      let store = try await trial.open(withKeys: ["a"])
      try expect("whether the name is empty", store.information.name.isEmpty, equals: false)
      let error = try await expect("a read of an invalid key", throws: .invalidKey) {
        try await store.value(forKey: "")
      }
      try expect("the store in an error", error.store, equals: store.information.name)
    }
  }
}

/// Throws a ``Mismatch`` unless the error of a refused call states the operation, the store, and that nothing changed.
private func expect<Store>(_ error: StoreError, of call: StoreCall<Store>, on store: Store) throws {
  try expect("the operation in the error of \(call.name)", error.operation, equals: call.operation)
  try expect("the store in the error of \(call.name)", error.store, equals: store.information.name)
  try expect("the outcome in the error of \(call.name)", error.outcome, equals: .nothingChanged)
  try expect("whether the error of \(call.name) has a message", error.message.isEmpty, equals: false)
}
