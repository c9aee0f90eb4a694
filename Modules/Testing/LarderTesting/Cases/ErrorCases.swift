import Larder

extension CaseList {
  mutating func addErrorCases() {
    begin(.errors, checking: .errors)
    add(
      "233a", "the error for an invalid key states the operation, store, key and outcome", keys: ["a", "b"]
    ) { store, _ in
      for key in StoreKey.invalid {
        try await expect(store, refuses: StoreCall.taking(key), with: .invalidKey, key: key)
      }
    }
    add("233b", "the error of a closed store states the operation and store", keys: ["a"]) { store, _ in
      try await store.close()
      try await expect(store, refuses: StoreCall.all, with: .closed)
    }
    add("233c", "the error for an invalid argument states the operation and store", keys: ["a"]) { store, _ in
      try await expect(store, refuses: StoreCall.senseless, with: .invalidArgument)
    }
    add(
      "233d", "the error for a value that cannot be encoded states its key and the underlying error", keys: ["a"],
      needs: [.encoding, .immediateRefusal]
    ) { store, _ in
      let calls = StoreCall<Store>.storing(.unencodable(), forKey: "secret")
      try await expect(store, refuses: calls, with: .encodingFailed, key: "secret")
      for call in calls {
        let error = try await expect(call.name, throws: .encodingFailed) { try await call.run(store) }
        try expect("whether the error of \(call.name) has an underlying error", error.underlying != nil, equals: true)
      }
    }
    add(
      "234", "an error's description does not show the key, but its detailed description does", keys: ["a"]
    ) { store, _ in
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
      "234a", "an error's description never shows the value or its key", keys: ["a"],
      needs: [.encoding, .immediateRefusal]
    ) { store, trial in
      func expectNoText(in calls: [StoreCall<Store>], of store: Store, throws code: StoreError.Code) async throws {
        for call in calls {
          let error = try await expect(call.name, throws: code, key: "secret") { try await call.run(store) }
          for secret in ["secret", "hidden"] {
            try expect("whether the error's description shows “\(secret)”", "\(error)".contains(secret), equals: false)
          }
        }
      }
      let refused = StoreCall<Store>.storing(.unencodable("hidden"), forKey: "secret")
      try await expectNoText(in: refused, of: store, throws: .encodingFailed)
      try await store.setValue(.undecodable("hidden"), forKey: "secret")
      let reads = [
        StoreCall<Store>("value", .value) { _ = try await $0.value(forKey: "secret") },
        StoreCall("values", .values) { _ = try await $0.values(forKeys: ["a", "secret"]) },
        StoreCall("entries", .entries) { _ = try await $0.entries(in: .all, limit: .max, order: .ascending) },
        StoreCall("update", .update) { try await $0.update("secret") { $0 = nil } },
      ]
      try await expectNoText(in: reads, of: trial.settled(store), throws: .corrupted)
    }
    add("235", "the store has a name, and its errors state it", keys: ["a"]) { store, _ in
      try expect("whether the name is empty", store.information.name.isEmpty, equals: false)
      let read = StoreCall<Store>("a read of an invalid key", .value) { _ = try await $0.value(forKey: "") }
      try await expect(store, refuses: [read], with: .invalidKey)
    }
  }
}
