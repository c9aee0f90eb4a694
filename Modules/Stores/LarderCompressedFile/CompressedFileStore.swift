#if Compression
public import Larder
public import LarderFiles

/// A store in one compressed file that `zcat` can read as lines of JSON at any time.
///
/// ```swift
/// let store = try await CompressedFileStore<User>(path: "users.gz")
/// try await store.setValue(User(name: "Ada"), forKey: "user:1")
/// let user = try store.value(forKey: "user:1")
/// try await store.close()
/// ```
///
/// The file is a sequence of gzip members, framed as BGZF (the SAM/BAM specification, section 4.1). Each write appends
/// a batch of changes. A small batch is stored uncompressed, and a larger one is compressed quickly. When enough has
/// been appended, the store compacts the file in the background: it rewrites the file with each entry once, in key
/// order, well compressed, in blocks of about 4 KiB. <doc:CompressedFileFormat> describes the format in full.
///
/// Only the keys and the locations of their values are in memory. An entry takes about 55 bytes, and the bytes of its
/// key beyond 23. A read decompresses one block, from the file or from the block cache.
///
/// A single value is read where the caller runs. Many or large values are read on the cooperative pool
/// (see "Threads and actors" in the documentation of `Larder`). A read that needs the disk waits for it. Writes run one
/// after another on the store's own thread, and compaction runs on another. Neither blocks a read.
///
/// ## Damage
///
/// Every block has a checksum that is unique to its file. The store opens even if a block is damaged. Reading a lost
/// entry throws `corrupted` with its key and a ``DamagedBlockError``, all other entries are readable, and `verify`
/// lists the damage. An older value never replaces a lost one. Compaction is refused until you have set or removed
/// every lost entry, so no loss goes unnoticed. A batch that was torn by a crash has no effect.
///
/// ## Sharing
///
/// One object in one process can have the file open, guarded by a lock on `users.gz.lock`. Symbolic links are resolved
/// first. A file with several hard links is refused. Other programs can read the file at any time.
public final class CompressedFileStore<Value: Sendable>: DataStore {
  /// The name of the store, its durability and its other properties.
  public let information: StoreInformation

  private let contents: SharedContent<CompressedFileContent>
  let writer: FileWriter<CompressedFile>
  private let coder: JSONValueCoder<Value>

  /// The name of the codec, which a write records if the file has one that the codec adopts.
  private let codecName: String
  private let owner: FileOwner

  /// The default limit of the block cache, in bytes: 8 MiB.
  public static var defaultCacheSize: Int { 8 << 20 }

  /// Opens a store.
  ///
  /// ```swift
  /// let words = try await CompressedFileStore(
  ///   path: "words.gz", codec: .json([String].self), access: .readOnly, cacheSize: 64 << 20)
  /// ```
  ///
  /// - Parameters:
  ///   - path: The path of the file. Its folder must exist. A new file has permissions 0600, and an existing one keeps
  ///     its own.
  ///   - codec: The codec of the values. If its format is not JSON, values are stored as base64.
  ///   - durability: The durability of a write when it returns. Defaults to `Durability.File.synced`.
  ///   - access: The access of the store to its file. Defaults to `StoreAccess.readWrite`. Any
  ///     other access changes nothing on disk, and works on a read-only mount and on another user's file.
  ///   - createsIfMissing: A Boolean value that indicates whether to create a missing file. Defaults to `true`. A store
  ///     that only reads never creates it.
  ///   - cacheSize: The maximum size, in bytes, of the decompressed blocks in memory, or 0 for no cache. Defaults to
  ///     ``defaultCacheSize``.
  ///   - fileSystem: The file system of the file. Defaults to the real one.
  /// - Throws: `StoreError`: `locked` if another store has the file open; `unrecognizedFormat` if the file is not a
  ///   store; `versionMismatch` if it was written in another version of the format or with another codec; `corrupted`
  ///   if it is damaged beyond recovery; `notFound`; `unsupported` if it has several hard links or is a mount point;
  ///   `notPermitted`; `full`; `ioFailed`. If an error is thrown, the file is left unchanged.
  public convenience init(
    path: String, codec: some Codec<Value>, durability: Durability.File = .synced, access: StoreAccess = .readWrite,
    createsIfMissing: Bool = true, cacheSize: Int = defaultCacheSize,
    fileSystem: some StoreFileSystem = POSIXFileSystem()
  ) async throws {
    let configuration = StoreFileConfiguration(
      path: path, durability: durability, access: access, createsIfMissing: createsIfMissing, fileSystem: fileSystem)
    try self.init(
      await UntypedCompressedFile(configuration, cacheSize: cacheSize, newCodecName: codec.name), codec: codec)
  }

  /// Creates a store from its open file.
  ///
  /// - Throws: `StoreError` with `versionMismatch` if it was written with another codec.
  init(_ file: UntypedCompressedFile, codec: some Codec<Value>) throws {
    writer = file.writer
    contents = file.contents
    var information = writer.information
    information.noteEncryption(by: codec)
    self.information = information
    coder = JSONValueCoder(codec: codec, store: information.name)
    codecName = try coder.codecRecord.name(replacing: file.codecName, during: .open, store: information.name)
    owner = file.owner
  }

  /// Opens a store of `Codable` values, with `JSONCodec`.
  ///
  /// - Parameters:
  ///   - path: The path of the file; see ``init(path:codec:durability:access:createsIfMissing:cacheSize:fileSystem:)``.
  ///   - durability: The durability of a write when it returns. Defaults to `Durability.File.synced`.
  ///   - access: The access of the store to its file. Defaults to `StoreAccess.readWrite`.
  ///   - createsIfMissing: A Boolean value that indicates whether to create a missing file. Defaults to `true`.
  /// - Throws: The errors of ``init(path:codec:durability:access:createsIfMissing:cacheSize:fileSystem:)``.
  public convenience init(
    path: String, durability: Durability.File = .synced, access: StoreAccess = .readWrite, createsIfMissing: Bool = true
  ) async throws where Value: Codable {
    try await self.init(
      path: path, codec: JSONCodec<Value>(), durability: durability, access: access, createsIfMissing: createsIfMissing)
  }

  // MARK: Reading

  /// Returns the value of a key, or `nil` if there isn't one.
  ///
  /// The value is decoded where the caller runs, whatever its size.
  ///
  /// - Throws: `StoreError`: `invalidKey`; `corrupted` if the value is lost; `corrupted` or `undecodable` if it cannot
  ///   be decoded; `ioFailed`; `closed`.
  public func value(forKey key: StoreKey) throws -> Value? {
    try information.check(key, for: .value)
    return try read(for: .value) {
      $0.find(key)
    } then: { finding, reader in
      try values([(key, finding)], reader, during: .value, isKept: true)[0]
    }
  }

  /// Returns the values of several keys, read from one snapshot.
  ///
  /// More than 64 values, values in several blocks, and more than 64 KiB of text are read and decoded off the caller's
  /// actor.
  ///
  /// - Throws: `StoreError`: `invalidKey`; `corrupted` if a value is lost; `corrupted` or `undecodable` if one cannot
  ///   be decoded; `ioFailed`; `closed`.
  public func values(forKeys keys: [StoreKey]) async throws -> [Value?] {
    try information.check(keys, for: .values)
    return try await BulkWork.run(atMost: keys.count) { [self] allowance in
      try read(for: .values) { index in
        keys.map { (key: $0, finding: index.find($0)) }
      } then: { findings, reader in
        try take(findings, from: &allowance)
        return try values(findings, reader, during: .values, isKept: true)
      }
    }
  }

  /// Returns the first entries of a range, read from one snapshot.
  ///
  /// If the limit is above 64, or the entries are in several blocks or have more than 64 KiB of text, they are read and
  /// decoded off the caller's actor.
  ///
  /// If an entry is lost, the underlying ``DamagedBlockError`` of the error names the keys to skip before you continue.
  ///
  /// - Throws: `StoreError`: `invalidArgument` if the limit is negative; `corrupted` if a value is lost; `corrupted` or
  ///   `undecodable` if one cannot be decoded; `ioFailed`; `closed`.
  public func entries(in range: KeyRange, limit: Int, order: ScanOrder) async throws -> [StoreEntry<Value>] {
    try information.check(limit: limit, for: .entries)
    return try await BulkWork.run(atMost: limit) { [self] allowance in
      try read(for: .entries) {
        IndexPage(of: $0, in: range, limit: limit, order: order)
      } then: { page, reader in
        try take(page.findings, from: &allowance)
        let values = try values(page.findings, reader, during: .entries, isKept: false)
        if let gap = page.gap { throw reader.damageError(gap.range, at: gap.block, during: .entries) }
        return zip(page.findings, values).compactMap { finding, value in
          value.map { StoreEntry(key: finding.key, value: $0) }
        }
      }
    }
  }

  /// Returns the first keys of a range, including known keys of lost entries, read from one snapshot.
  ///
  /// - Throws: `StoreError`: `invalidArgument` if the limit is negative; `corrupted` if damage makes it unknown which
  ///   keys exist; `closed`.
  public func keys(in range: KeyRange, limit: Int, order: ScanOrder) throws -> [StoreKey] {
    try information.check(limit: limit, for: .keys)
    return try read(for: .keys) {
      IndexPage(of: $0, in: range, limit: limit, order: order)
    } then: { page, reader in
      if let gap = page.gap { throw reader.damageError(gap.range, at: gap.block, during: .keys) }
      return page.findings.map(\.key)
    }
  }

  /// Returns the number of entries in a range.
  ///
  /// Lost entries count if their keys are known.
  ///
  /// - Throws: `StoreError`: `corrupted` if damage makes it unknown which keys exist; `closed`.
  public func count(in range: KeyRange) throws -> Int {
    try read(for: .count) { index in
      (index.entries.count(in: range), index.gap(in: range))
    } then: { found, reader in
      if let gap = found.1 { throw reader.damageError(gap.range, at: gap.block, during: .count) }
      return found.0
    }
  }

  private func read<Found: Sendable, Result>(
    for operation: StoreOperation, _ body: (CompressedFileIndex) -> Found,
    then use: (Found, LineReader) throws -> Result
  ) throws -> Result {
    let result = try contents.read { content in
      content.lines.map { (lines: $0, found: body(content.index)) }
    } then: { content in
      try content.map { try use($0.found, $0.lines) }
    }
    guard let result = result ?? nil else { throw information.closedError(for: operation) }
    return result
  }

  /// Deducts the bytes to read and decompress for a few entries.
  ///
  /// Each further block costs its maximum size.
  private func take(
    _ findings: [(key: StoreKey, finding: CompressedFileIndex.Finding)], from allowance: inout BulkWork.Allowance
  ) throws {
    guard findings.count <= BulkWork.entryLimit else { return }
    var (count, blocks): (Int, Set<Int64>) = (0, [])
    for case .found(let location) in findings.lazy.map(\.finding) {
      count += Int(location.length)
      blocks.insert(location.block)
    }
    // A single block does not noticeably delay the caller.
    try allowance.take(count + max(blocks.count - 1, 0) * BlockText.maximumSize)
  }

  private func values(
    _ findings: [(key: StoreKey, finding: CompressedFileIndex.Finding)], _ reader: LineReader,
    during operation: StoreOperation, isKept: Bool
  ) throws -> [Value?] {
    try reader.read(findings, during: operation, isKept: isKept) { key, line in
      let text = try coder.text(ofLine: line, forKey: key, during: operation)
      return try coder.value(of: text, forKey: key, during: operation)
    }
  }

  // MARK: Writing

  /// Applies a batch of changes atomically; see `DataStore.apply(_:)`.
  ///
  /// More than 64 values, or more than 64 KiB of text, are encoded off the caller's actor. A small buffered write runs on the
  /// caller's thread, unless the caller is on the main actor or the store is in use.
  public func apply(_ changes: ChangeBatch<Value>) async throws {
    try information.check(changes)
    let (texts, codec) = (try await coder.texts(of: changes), (name: codecName, format: coder.format))
    let append = { @Sendable (file: inout CompressedFile) in try file.append(texts, codec: codec, during: .apply) }
    let isWritten: Void? = try writer.writeInPlace(if: { $0.canAppend(texts, codecName: codec.name) }) { writer in
      try writer.apply(during: .apply, append)
    }
    if isWritten == nil { try await writer.apply(during: .apply, append) }
  }

  /// Reads, changes and writes back the values of some keys atomically; see `DataStore.update(deciding:_:)`.
  ///
  /// `body` runs on the thread of the store's writer. If it assigns nothing, or only values that are stored already, nothing is written.
  public func update<Result: Sendable>(
    deciding keys: [StoreKey], _ body: @escaping UpdateBody<Value, Result>
  ) async throws -> Result {
    try information.check(updateOf: keys)
    let (coder, codecName) = (coder, codecName)
    return try await writer.apply(during: .update) { file in
      let lines = try file.lines(forKeys: keys)
      let texts = try zip(keys, lines).map { key, line in
        try line.map { try coder.text(ofLine: $0, forKey: key, during: .update) }
      }
      let (changes, result) = try coder.update(keys, texts, deciding: body)
      try file.append(changes, codec: (codecName, coder.format), during: .update)
      return result
    }
  }

  /// Ensures that all earlier writes survive power loss.
  ///
  /// - Throws: `StoreError`: `closed`; `ioFailed`; `full`.
  public func synchronize() async throws {
    try await writer.run(.synchronize) { try $0.synchronize() }
  }

  /// Closes the store after waiting for running operations and a running compaction, and releases the lock.
  ///
  /// A small store whose file is mostly obsolete is compacted first.
  ///
  /// - Throws: `StoreError`: `ioFailed`; `full`. The store is closed nevertheless, and everything that was
  ///   acknowledged is in the file.
  public func close() async throws {
    try await writer.close()
  }
}

extension CompressedFileStore: MaintainableStore {
  /// Returns the store's statistics; see `MaintainableStore/storeStatistics()`.
  public func storeStatistics() async throws -> StoreStatistics {
    try await writer.run(.statistics) { $0.statistics() }
  }

  /// Reads and checks the whole file; see `MaintainableStore/verify()`.
  public func verify() async throws -> VerificationReport {
    try await writer.run(.verify) { [coder] file in
      func problem(_ key: StoreKey, _ line: ArraySlice<UInt8>) -> String? {
        coder.problem(in: try StoreLine.value(line, ofKey: key), forKey: key)
      }
      return try file.verify(problem)
    }
  }

  /// Returns free space to the file system; see `MaintainableStore/compact()`.
  ///
  /// ```swift
  /// let words = try await CompressedFileStore<[String]>(path: path)
  /// try await words.apply([.set("green", ["verde", "vert"]), .set("red", ["rojo", "rouge"])])
  /// let red = try words.value(forKey: "red")
  /// try await words.compact()
  /// try await words.close()
  /// ```
  public func compact() async throws {
    try await writer.compact()
  }

  /// Writes a complete copy of the store; see `MaintainableStore/backup(to:compacting:)`.
  public func backup(to path: String, compacting: Bool) async throws {
    try await writer.run(.backup) { try $0.backup(to: path, compacting: compacting) }
  }
}

/// An error that reports a damaged block of a compressed file.
///
/// ``CompressedFileStore`` throws it as the `StoreError.underlying` error of a `StoreError`.
public struct DamagedBlockError: UnreadableKeysError, Hashable {
  /// The offset of the block in the file, in bytes.
  public let block: Int64

  /// The keys that cannot be read because of the damage: one key, or a range where it is unknown which keys exist.
  ///
  /// Keys and entries before `KeyRange.lowerBound` and from `KeyRange.upperBound` on are readable, unless another
  /// block is damaged.
  public let keys: KeyRange

  /// A Boolean value that indicates whether the changes in the block are unknown, so they may have affected any key.
  ///
  /// Every entry that was written before the block is then lost, although its bytes are readable. To read it, open the store
  /// with ``CompressedFileStoreProvider/init(findsPossiblyOlder:)``.
  public let hasUnknownChanges: Bool
}

extension DamagedBlockError: CustomStringConvertible {
  /// A description that names the offset of the block.
  public var description: String { "the block at byte \(block) is damaged" }
}
#endif
