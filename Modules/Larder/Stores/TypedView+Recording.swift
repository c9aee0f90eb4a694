/// Views that record their codec.
///
/// The record is the entry of the base whose key is the prefix of the view, and has no key in the view. Its value is the
/// name of the codec in UTF-8.
extension TypedView {
  /// The key of the record, or an empty array.
  var recordKeys: [StoreKey] { recordsCodec ? [prefix] : [] }

  /// Compares the codec with the record, at opening.
  fileprivate func checkCodec(during operation: StoreOperation) async throws {
    let record = try await translatingErrors { try await base.value(forKey: prefix) }
    _ = try newRecord(replacing: record, during: operation)
  }

  /// Returns the record that the view must have with its next write, or `nil` if the stored one stays.
  private func newRecord(replacing record: [UInt8]?, during operation: StoreOperation) throws -> [UInt8]? {
    let codec = coder.codecRecord
    // Without a record, the view is new, or the base was emptied.
    guard let record else { return Array(codec.name.utf8) }
    let recordedName = String(decoding: record, as: UTF8.self)
    let name = try codec.name(replacing: recordedName, during: operation, store: information.name)
    return name == recordedName ? nil : Array(name.utf8)
  }

  /// Returns the record that the view must have if an update commits, of which the last slot is the record.
  func newRecord(in slots: UpdateSlots<[UInt8]>, during operation: StoreOperation) throws -> [UInt8]? {
    recordsCodec ? try newRecord(replacing: slots[slots.count - 1], during: operation) : nil
  }

  /// Compares the codec with the record in a transaction that writes.
  func confirmCodec(in transaction: StoreTransaction<Base>) async throws {
    guard recordsCodec else { return }
    let record = try await transaction.value(forKey: prefix)
    if let new = try newRecord(replacing: record, during: .transaction) {
      try transaction.setValue(new, forKey: prefix)
    }
  }

  /// Applies a batch of the base in an update that compares the record.
  ///
  /// - Parameters:
  ///   - batch: The changes of the base.
  ///   - format: The format of its values.
  func applyRecording(_ batch: ChangeBatch<[UInt8]>, in format: CodecRecord.Format) async throws {
    var last: [StoreKey: [UInt8]?] = [:]
    var removesRange = false
    for change in batch.changes {
      switch change {
      case .set(let key, let value): last[key] = .some(value)
      case .remove(let key): last[key] = .some(nil)
      case .removeAll: removesRange = true
      }
    }
    if last.isEmpty, !removesRange { return try await base.apply(batch) }
    // No update can remove a range, so the record is compared, and raised, in a commit before.
    let changes = removesRange ? [] : last.sorted { $0.key < $1.key }
    try await base.update(deciding: changes.map(\.key) + recordKeys) { slots in
      UpdateDecision(catching: {
        let record = try newRecord(in: slots, during: .apply)
        try codecRecord.checkUnchanged(since: format, during: .apply, store: information.name)
        for (index, change) in changes.enumerated() { slots[index] = change.value }
        if let record { slots[changes.count] = record }
        return .commit(())
      })
    }.get()
    if removesRange { try await base.apply(batch) }
  }
}

extension DataStore where Value == [UInt8] {
  /// Opens a view of this store of bytes that records the name of its codec in the store; see ``TypedView``.
  ///
  /// A program with another codec is refused. So is a program with an older version of a ``VersionedCodec``, also one that
  /// has opened the view already: its next write throws `versionMismatch`, instead of removing what it does not know.
  ///
  /// The record is the entry whose key is the prefix. Each write reads it in the same commit. A batch that removes a range reads
  /// it in a commit of its own before. Views of the same prefix that do not record their codec neither see nor compare it.
  ///
  /// - Parameters:
  ///   - type: The type of the values.
  ///   - prefix: The prefix of the view's keys in this store, at least one byte.
  ///   - codec: The codec of the values.
  /// - Throws: ``StoreError``: `versionMismatch` if another codec is recorded; `invalidArgument` if the prefix is empty;
  ///   `unsupported` if the entries of the store do not stay until they are removed; the errors of a read.
  public func typed<Typed: Sendable>(
    _ type: Typed.Type, prefix: StoreKey, recording codec: some Codec<Typed>
  ) async throws -> TypedView<Self, Typed> {
    guard !prefix.isEmpty else {
      throw StoreError(
        .invalidArgument, during: .open, store: information.name,
        message: "a view that records its codec needs a prefix, which is the key of the record")
    }
    try information.checkKeepsEntries(for: "a record of a codec")
    let view = TypedView(self, prefix: prefix, codec: codec, recordsCodec: true)
    try await view.checkCodec(during: .open)
    return view
  }
}
