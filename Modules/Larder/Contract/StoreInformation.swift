/// The name, the limits and the durability of a store.
///
/// ```swift
/// print(store.information.name, store.information.durability)
/// if let limit = store.information.maximumValueSize, photo.count > limit { throw TooLarge() }
/// ```
public struct StoreInformation: Sendable {
  /// The number of objects and processes that can have the data of a store open at the same time.
  public enum Sharing: Sendable, Hashable {
    /// Only one store object in one process can have the data open. Opening a second one throws
    /// ``StoreError/Code/locked``.
    case exclusive
    /// Any number of processes can have the data open.
    case betweenProcesses
    /// Any number of processes can have the data open, also on other machines, as with a server.
    case betweenHosts
  }

  /// The name of the store in errors, reports and logs.
  public var name: String

  /// The durability of a write that has returned.
  public var durability: Durability

  /// The number of objects and processes that can have the data of the store open at the same time.
  public var sharing: Sharing

  /// The access of the store to its files.
  ///
  /// With any access other than ``StoreAccess/readWrite``, every write throws ``StoreError/Code/notPermitted``.
  public var access: StoreAccess

  /// The maximum length of a key, in bytes.
  ///
  /// It is ``StoreKey/maximumLength``, or less for a view that adds a prefix to its keys.
  public var maximumKeyLength: Int

  /// The maximum size of an encoded value, in bytes, or `nil` if only memory and disk limit it.
  public var maximumValueSize: Int?

  /// The maximum number of changes in a batch and of keys in an update, or `nil` if only memory and disk limit it.
  ///
  /// A layer with records of its own needs several changes of its base for one of its own, and passes this number on as an
  /// upper bound.
  public var maximumChangeCount: Int?

  /// The identity of the store's entries, which decorators pass on unless they change keys or values.
  ///
  /// Transactions tell by it whether a view belongs to their store. Defaults to `nil`, with which only stores that are
  /// objects can be told apart.
  public var identity: StoreIdentity?

  /// How long entries stay without a call that removes them.
  ///
  /// Defaults to `nil`, for unknown. This counts as the worst case where a layer would lose its records.
  public var entryLifetime: EntryLifetime?

  /// The commits that the store reports to its observers, if it is an ``ObservableStore``.
  ///
  /// Defaults to `nil` that could be relied on.
  public var reportedCommits: ReportedCommits?

  /// A Boolean value that indicates whether the store is a ``DurableQueue``, whose items have an order, leases and
  /// attempts that a copy would lose.
  ///
  /// Defaults to `false`.
  public var isQueue = false

  /// A Boolean value that indicates whether reads may return copies that are older than the latest commit, such as
  /// those of a cache.
  ///
  /// Defaults to `nil`, for unknown. This counts as `true`.
  public var readsMayBeCopies: Bool?

  /// The form of the values in files and servers.
  ///
  /// A layer that copies encrypted values refuses a store that keeps them in plain form, unless you allow it by name. Defaults to
  /// `nil`, for unknown. This counts as plain where copies are kept.
  public var valuesAtRest: ValuesAtRest?

  /// The form of the values in files and servers.
  public enum ValuesAtRest: Sendable, Hashable {
    /// The values are in memory only.
    case absent
    /// The values cannot be read without their keys.
    case encrypted
    /// The files are enough to read the values.
    case plain
  }

  /// How long entries stay without a call that removes them.
  public enum EntryLifetime: Sendable, Hashable {
    /// Until they are removed.
    case untilRemoved
    /// Until they are removed, or evicted because the store is full.
    case untilEvicted
    /// Until they are removed, or their deadline has passed.
    case untilDeadline
  }

  /// The commits that a store reports to its observers.
  public enum ReportedCommits: Sendable, Hashable, Comparable {
    /// Those of this store object.
    case ofObject
    /// Those of all programs on this host.
    case ofHost
    /// Those of all hosts.
    case ofAllHosts
  }

  /// A Boolean value that indicates whether the store reports the commits of all programs that can write to it.
  ///
  /// If it is `false`, a layer that relies on reports must look again from time to time.
  public var reportsAllCommits: Bool {
    guard let reportedCommits else { return false }
    return switch sharing {
    case .exclusive: true
    case .betweenProcesses: reportedCommits >= .ofHost
    case .betweenHosts: reportedCommits >= .ofAllHosts
    }
  }

  /// Creates the information of a store.
  ///
  /// ```swift
  /// StoreInformation(name: "redis", durability: .accepted, sharing: .betweenHosts, maximumValueSize: 512 << 20)
  /// ```
  ///
  /// - Parameters:
  ///   - name: The name of the store in errors, reports and logs. It must not contain a secret.
  ///   - durability: The durability of a write when it returns.
  ///   - sharing: The number of objects and processes that can have the data of the store open at the same time.
  ///   - access: The access of the store to its files. Defaults to ``StoreAccess/readWrite``.
  ///   - maximumKeyLength: The maximum length of a key, in bytes. Defaults to ``StoreKey/maximumLength``, and is never
  ///     more.
  ///   - maximumValueSize: The maximum size of an encoded value, in bytes. Defaults to `nil`, for no limit.
  ///   - entryLifetime: How long entries stay. Defaults to `nil`, for unknown.
  ///   - reportedCommits: The commits that the store reports. Defaults to `nil`.
  ///   - identity: The identity of the store's entries. Defaults to `nil`.
  ///   - readsMayBeCopies: A Boolean value that indicates whether reads may return older copies. Defaults to `nil`, for
  ///     unknown.
  public init(
    name: String,
    durability: Durability,
    sharing: Sharing,
    access: StoreAccess = .readWrite,
    maximumKeyLength: Int = StoreKey.maximumLength,
    maximumValueSize: Int? = nil,
    entryLifetime: EntryLifetime? = nil,
    reportedCommits: ReportedCommits? = nil,
    identity: StoreIdentity? = nil,
    readsMayBeCopies: Bool? = nil
  ) {
    self.name = name
    self.durability = durability
    self.sharing = sharing
    self.access = access
    self.maximumKeyLength = min(maximumKeyLength, StoreKey.maximumLength)
    self.maximumValueSize = maximumValueSize
    self.entryLifetime = entryLifetime
    self.reportedCommits = reportedCommits
    self.identity = identity
    self.readsMayBeCopies = readsMayBeCopies
  }
}

/// Encryption at rest.
extension StoreInformation {
  /// Notes whether the values are encrypted by the codec of the store, or already by the store of bytes below.
  ///
  /// - Parameter codec: The codec of the values.
  public mutating func noteEncryption(by codec: some Codec) {
    if codec.encryptsValues { valuesAtRest = .encrypted }
    if valuesAtRest == nil { valuesAtRest = .plain }
  }

  /// Checks that copies of encrypted values are encrypted too.
  ///
  /// - Parameters:
  ///   - form: The form of the copies, or `nil` for unknown.
  ///   - place: The name of the store of the copies, for the error.
  ///   - allowsPlainCopies: A Boolean value that indicates whether they need not be.
  ///   - operation: The operation, for the error. Defaults to ``StoreOperation/open``.
  /// - Throws: ``StoreError`` with `unsupported`.
  public func checkEncryption(
    ofCopies form: ValuesAtRest?, in place: String, allowsPlainCopies: Bool, during operation: StoreOperation = .open
  ) throws {
    guard valuesAtRest == .encrypted, form == .plain || form == nil, !allowsPlainCopies else { return }
    throw StoreError(
      .unsupported, during: operation, store: name,
      message: "the values are encrypted, and their copies in \(place) would not be; encrypt them there too, or allow "
        + "plain copies by name")
  }
}

/// Checks of arguments, which every store makes before it changes anything.
extension StoreInformation {
  /// Checks that a key has at least one byte and at most ``maximumKeyLength`` bytes.
  ///
  /// ```swift
  /// func value(forKey key: StoreKey) async throws -> User? {
  ///   try information.check(key, for: .value)
  ///   return try await fetch(key)
  /// }
  /// ```
  ///
  /// - Parameters:
  ///   - key: The key.
  ///   - operation: The operation that received the key.
  /// - Throws: ``StoreError`` with `invalidKey`.
  public func check(_ key: StoreKey, for operation: StoreOperation) throws {
    let count = key.count
    guard count == 0 || count > maximumKeyLength else { return }
    let message =
      count == 0
      ? "a key must have at least 1 byte, not 0" : "a key must have at most \(maximumKeyLength) bytes, not \(count)"
    throw StoreError(.invalidKey, during: operation, store: name, key: key, message: message)
  }

  /// Checks that every key is valid.
  ///
  /// - Parameters:
  ///   - keys: The keys.
  ///   - operation: The operation that received the keys.
  /// - Throws: ``StoreError`` with `invalidKey` for the first invalid key.
  public func check(_ keys: [StoreKey], for operation: StoreOperation) throws {
    for key in keys {
      try check(key, for: operation)
    }
  }

  /// Checks that the store is not open for reading only.
  ///
  /// - Parameter operation: The operation that would write.
  /// - Throws: ``StoreError`` with `notPermitted`.
  @inlinable
  public func checkWritable(for operation: StoreOperation) throws {
    if access != .readWrite { throw readOnlyError(for: operation) }
  }

  @usableFromInline
  func readOnlyError(for operation: StoreOperation) -> StoreError {
    StoreError(
      .notPermitted, during: operation, store: name,
      message: "the store is open for reading only; open it with the access readWrite to change it")
  }

  /// Checks that the store is writable, that every key of a batch is valid, and that it has no more changes than
  /// ``maximumChangeCount``.
  ///
  /// ```swift
  /// func apply(_ changes: ChangeBatch<User>) async throws {
  ///   try information.check(changes)
  ///   try await commit(changes)
  /// }
  /// ```
  ///
  /// - Parameter changes: The batch.
  /// - Throws: ``StoreError`` with `notPermitted`; `invalidArgument`; `invalidKey` for the first invalid key.
  @inlinable
  public func check(_ changes: ChangeBatch<some Any>) throws {
    try checkWritable(for: .apply)
    // The operation is made only for the error.
    if let maximumChangeCount, changes.count > maximumChangeCount {
      throw changeCountError(changes.count, for: .apply)
    }
    // Unspecialized generic code would create a key path anew on each call, which takes several microseconds.
    for change in changes.changes {
      if let key = change.key { try check(key, for: .apply) }
    }
  }

  @usableFromInline
  func changeCountError(_ count: Int, for operation: StoreOperation) -> StoreError {
    StoreError(
      .invalidArgument, during: operation, store: name,
      message: "a commit of the store has at most \(maximumChangeCount ?? .max) changes, not \(count); split it")
  }

  /// Checks that a limit is not negative.
  ///
  /// - Parameters:
  ///   - limit: The maximum number of entries to return.
  ///   - operation: The operation that received the limit.
  /// - Throws: ``StoreError`` with `invalidArgument`.
  public func check(limit: Int, for operation: StoreOperation) throws {
    guard limit < 0 else { return }
    throw StoreError(
      .invalidArgument, during: operation, store: name, message: "limit must be at least 0, not \(limit)")
  }

  /// Checks that the store is writable, and that the keys of an update are valid and distinct, and no more than
  /// ``maximumChangeCount``.
  ///
  /// - Parameter keys: The keys.
  /// - Throws: ``StoreError`` with `notPermitted`; `invalidKey`; `invalidArgument` if a key occurs twice, or there are too
  ///   many.
  public func check(updateOf keys: [StoreKey]) throws {
    try checkWritable(for: .update)
    if let maximumChangeCount, keys.count > maximumChangeCount { throw changeCountError(keys.count, for: .update) }
    try check(keys, for: .update)
    // Ascending keys are distinct.
    if zip(keys, keys.dropFirst()).allSatisfy({ $0 < $1 }) { return }
    var seen: Set<StoreKey> = []
    for key in keys where !seen.insert(key).inserted {
      throw StoreError(
        .invalidArgument, during: .update, store: name, key: key,
        message: "the keys of an update must be distinct, but one occurs twice")
    }
  }

  /// Checks that a layer can keep records in the store, or a copy of it, that must not lose entries.
  ///
  /// ```swift
  /// try base.information.checkKeepsEntries(for: "audit")  // refuses a base whose entries expire or are evicted
  /// ```
  ///
  /// - Parameters:
  ///   - layer: The layer, as the subject of a sentence, such as "an index".
  ///   - operation: The operation, for errors. Defaults to opening.
  /// - Throws: ``StoreError`` with `unsupported` if entries can vanish, if it is unknown whether they can, or if the store is
  ///   a queue.
  public func checkKeepsEntries(for layer: String, during operation: StoreOperation = .open) throws {
    func refuse(_ reason: String) -> StoreError {
      StoreError(.unsupported, during: operation, store: name, message: reason)
    }
    switch entryLifetime {
    case .untilRemoved: break
    case .untilDeadline:
      throw refuse("\(layer) must not lose entries, and those of this store expire; put the expiring store above it")
    case .untilEvicted:
      throw refuse("\(layer) must not lose entries, and this store evicts them; use the store below the bounded one")
    case nil:
      throw refuse(
        "\(layer) must not lose entries, and this store does not say whether it keeps them; set `entryLifetime` in its "
          + "information")
    }
    try checkIsNoQueue(for: layer, during: operation)
  }

  /// Checks that the store is no queue.
  ///
  /// ```swift
  /// try base.information.checkIsNoQueue(for: "audit", during: .open)
  /// ```
  ///
  /// - Parameters:
  ///   - layer: The user of the store, as the subject of a sentence, such as "a copy".
  ///   - operation: The operation, for errors.
  /// - Throws: ``StoreError`` with `unsupported`.
  public func checkIsNoQueue(for layer: String, during operation: StoreOperation) throws {
    guard isQueue else { return }
    throw StoreError(
      .unsupported, during: operation, store: name,
      message:
        "\(layer) would lose the order, the delays and the attempts of a queue's items; receive and enqueue them, or "
        + "use `larder queue move`")
  }

  /// Returns the error of an operation on a closed store.
  ///
  /// ```swift
  /// func value(forKey key: StoreKey) async throws -> User? {
  ///   guard operations.begin() else { throw information.closedError(for: .value) }
  ///   defer { operations.end() }
  ///   return try await fetch(key)
  /// }
  /// ```
  ///
  /// - Parameter operation: The operation.
  public func closedError(for operation: StoreOperation) -> StoreError {
    StoreError(.closed, during: operation, store: name, message: "the store was closed")
  }
}

/// The access of a store to the files that it opens.
///
/// ```swift
/// let store = try await JSONFileStore<User>(path: "users.json", access: .readOnly)
/// ```
public enum StoreAccess: Sendable, Hashable, CaseIterable {
  /// The store reads and writes. The default.
  case readWrite

  /// The store only reads, and leaves every file as it is. It creates no file, and changes no owner or permission.
  ///
  /// This access works on a read-only mount, in an app bundle and on another user's file. If the store has a lock file,
  /// the reader takes part in locking: if only one object may have the store open, opening it throws
  /// ``StoreError/Code/locked`` while a writer has it open. Every write throws ``StoreError/Code/notPermitted``.
  case readOnly

  /// The store only reads, and takes no lock. You promise that nothing writes to the files while the store is open.
  ///
  /// Use it for files that cannot change, such as those on a read-only medium. If the files change nevertheless, reads
  /// return wrong entries or fail.
  case immutable
}
