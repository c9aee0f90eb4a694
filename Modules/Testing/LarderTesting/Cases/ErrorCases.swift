import Larder

extension CaseList {
  mutating func addErrorCases() {
    add(233, "a", "the error of an invalid key tells operation, store, key and outcome", in: .errors, checks: .errors) {
      trial in
      let store = try await trial.open(withKeys: ["a", "b"])
      for key in ["", StoreKey(bytes: Array(repeating: 0x61, count: 512))] {
        for call in StoreCall<Store>.taking(key) {
          let error = try await expect(call.name, throws: .invalidKey, key: key) { try await call.run(store) }
          try expect(error, of: call, on: store)
        }
      }
    }
    add(233, "b", "the error of a closed store tells operation and store", in: .errors, checks: .errors) { trial in
      let store = try await trial.open(withKeys: ["a"])
      try await store.close()
      for call in StoreCall<Store>.all {
        let error = try await expect(call.name, throws: .closed) { try await call.run(store) }
        try expect(error, of: call, on: store)
      }
    }
    add(
      233, "c", "the error of an argument that makes no sense tells operation and store", in: .errors, checks: .errors
    ) {
      trial in
      let store = try await trial.open(withKeys: ["a"])
      for call in StoreCall<Store>.senseless {
        let error = try await expect(call.name, throws: .invalidArgument) { try await call.run(store) }
        try expect(error, of: call, on: store)
      }
    }
    add(
      233, "d", "the error of a value that cannot be encoded tells its key and what led to it", in: .errors,
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
        try expect("whether the error of \(call.name) tells what led to it", error.underlying != nil, equals: true)
      }
    }
    add(234, "", "the description of an error shows no key, the detailed one does", in: .errors, checks: .errors) {
      trial in
      let store = try await trial.open(withKeys: ["a"])
      let key = StoreKey("secret" + String(repeating: "x", count: 512))
      for call in StoreCall<Store>.taking(key) {
        let error = try await expect(call.name, throws: .invalidKey, key: key) { try await call.run(store) }
        try expect("whether the description shows the key", "\(error)".contains("secret"), equals: false)
        try expect(
          "whether the detailed description shows the key", error.detailedDescription.contains("secret"), equals: true)
      }
    }
    add(
      234, "a", "the description of no error about a value shows its key or the value", in: .errors, checks: .errors,
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
        try expect("whether the description shows the key", "\(error)".contains("secret"), equals: false)
        try expect("whether the description shows the value", "\(error)".contains("hidden"), equals: false)
      }
    }
    add(235, "", "the store has a name", in: .errors, checks: .errors) { trial in
      let store = try await trial.open(withKeys: ["a"])
      try expect("whether the name is empty", store.information.name.isEmpty, equals: false)
      let error = try await expect("an invalid key", throws: .invalidKey) { try await store.value(forKey: "") }
      try expect("the name in an error", error.store, equals: store.information.name)
    }
  }
}

/// Throws a ``Mismatch`` unless the error of a refused call tells operation and store, and that nothing changed.
private func expect<Store>(_ error: StoreError, of call: StoreCall<Store>, on store: Store) throws {
  try expect("the operation in the error of \(call.name)", error.operation, equals: call.operation)
  try expect("the store in the error of \(call.name)", error.store, equals: store.information.name)
  try expect("the outcome in the error of \(call.name)", error.outcome, equals: .nothingChanged)
  try expect("whether the error of \(call.name) has a message", error.message.isEmpty, equals: false)
}
