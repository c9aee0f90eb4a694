package import Larder
package import Testing

/// The programs of a rolling deployment, which have the same store open.
package struct VersionDeployment: Sendable {
  /// A value whose second property is new in version 2.
  ///
  /// One type has both, because a process has a store of some kinds open with one type only.
  package struct User: Codable, Sendable, Equatable {
    package var name: String
    package var email: String?
    package init(_ name: String, email: String? = nil) { (self.name, self.email) = (name, email) }
  }

  /// A program with version 1 alone.
  package let old: VersionedCodec<JSONCodec<User>>

  /// The first step: reads both versions, and writes version 1 until another program has written version 2.
  package let first: VersionedCodec<JSONCodec<User>>

  /// The second step: version 2.
  package let second: VersionedCodec<JSONCodec<User>>

  package init() throws {
    let base = JSONCodec<User>()
    let migration = ValueMigration(from: 1, base) { $0 }
    old = try base.versioned(1)
    first = try base.versioned(2, migration, writing: OlderVersion(1, base) { User($0.name) })
    second = try base.versioned(2, migration)
  }

  /// Writes with several programs that have the same store open.
  ///
  /// - Parameter open: A closure that opens the store with a codec, while it is open with others.
  package func check(
    sourceLocation: SourceLocation = #_sourceLocation,
    _ open: (VersionedCodec<JSONCodec<User>>) async throws -> AnyDataStore<User>
  ) async throws {
    func expect(
      _ store: AnyDataStore<User>, _ key: StoreKey, _ user: User?, _ location: SourceLocation = #_sourceLocation
    ) async throws {
      #expect(try await store.value(forKey: key) == user, "\(key)", sourceLocation: location)
    }
    let olds = try await open(old)
    try await olds.setValue(User("Ada"), forKey: "a")
    let firsts = try await open(first)
    try await firsts.setValue(User("Bob", email: "lost until version 2"), forKey: "b")
    try await firsts.update("a") { $0?.name = "Ada L." }
    try await expect(olds, "a", User("Ada L."))
    try await expect(olds, "b", User("Bob"))
    try await olds.setValue(User("Cleo"), forKey: "c")

    // Opening and reading raise nothing.
    let seconds = try await open(second)
    try await expect(seconds, "b", User("Bob"))
    try await olds.setValue(User("Cleo L."), forKey: "c")
    try await seconds.update("a") { $0?.email = "a@example.org" }
    let ada = User("Ada L.", email: "a@example.org")

    let writes: [(String, () async throws -> Void)] = [
      ("set", { try await olds.setValue(User("x"), forKey: "a") }),
      ("update", { try await olds.update("b") { $0?.name = "x" } }),
      ("removal", { try await olds.removeValue(forKey: "a") }),
      ("batch", { try await olds.apply([.set("b", User("x")), .remove("a")]) }),
      ("removal of all", { try await olds.apply([.set("b", User("x")), .removeAll(.all)]) }),
    ]
    for (name, write) in writes {
      let error = await #expect(throws: StoreError.self, "\(name)", sourceLocation: sourceLocation) {
        try await write()
      }
      #expect(error?.code == .versionMismatch, "\(name)", sourceLocation: sourceLocation)
      #expect(error?.message.contains("json+v2") == true, "\(name)", sourceLocation: sourceLocation)
      #expect(error?.outcome == .nothingChanged, "\(name)", sourceLocation: sourceLocation)
    }
    try await expect(seconds, "a", ada)
    try await expect(olds, "b", User("Bob"))
    await expectStoreError(.versionMismatch, sourceLocation: sourceLocation) { try await open(old) }

    // The program of the first step continues, and loses nothing that the others have written.
    try await expect(firsts, "a", ada)
    try await refusedOnce(sourceLocation: sourceLocation) { try await firsts.setValue(ada, forKey: "a") }
    try await expect(seconds, "a", ada)
    try await firsts.update("b") { $0?.email = "b@example.org" }
    try await expect(seconds, "b", User("Bob", email: "b@example.org"))
    let again = try await open(first)
    try await again.setValue(User("Dora", email: "d@example.org"), forKey: "d")
    try await expect(seconds, "d", User("Dora", email: "d@example.org"))
    try await seconds.removeValue(forKey: "d")
    await expectStoreError(.versionMismatch, sourceLocation: sourceLocation) { try await open(old) }
  }

  /// Runs a write of a program that notices by it that another one has raised the version.
  ///
  /// The value that it has encoded in version 1 is refused, once.
  package func refusedOnce(
    sourceLocation: SourceLocation = #_sourceLocation, _ write: () async throws -> Void
  ) async throws {
    let error = await expectStoreError(.conflict, sourceLocation: sourceLocation) { try await write() }
    #expect(error?.isRetryable == true, sourceLocation: sourceLocation)
    try await write()
  }
}
