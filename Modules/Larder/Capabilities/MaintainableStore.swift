/// A store that an operator can measure, verify, compact and back up.
///
/// Decorators forward this capability, so you can call it on any stack whose base has it. For a store whose type is
/// known only at run time, use ``AnyDataStore/maintenance``.
///
/// ```swift
/// func backUp(_ store: some MaintainableStore<User>, to path: String) async throws {
///   let report = try await store.verify()
///   guard report.findings.isEmpty else { throw DamagedBackupError(report: report) }
///   try await store.backup(to: path, compacting: true)
/// }
/// ```
public protocol MaintainableStore<Value>: DataStore {
  /// Returns the size of the store.
  ///
  /// ```swift
  /// let statistics = try await store.storeStatistics()
  /// print(statistics.entryCount, "entries in", statistics.bytesOnDisk ?? 0, "bytes")
  /// for detail in statistics.details { print(detail.name, detail.value) }
  /// ```
  ///
  /// - Returns: The number of entries, the space on disk, and details that depend on the kind of store.
  /// - Throws: ``StoreError`` with `closed`; `ioFailed`.
  func storeStatistics() async throws -> StoreStatistics

  /// Reads and checks everything that is stored, values included.
  ///
  /// Damage is not an error. The report contains it as a finding, and also each encrypted value that cannot be checked
  /// because its key is not available.
  ///
  /// ```swift
  /// let report = try await store.verify()
  /// for finding in report.findings { print(finding.key?.description ?? finding.place, finding.message) }
  /// ```
  ///
  /// - Returns: The number of entries that were read, and the findings.
  /// - Throws: ``StoreError`` with `closed`; `ioFailed` if the store cannot be read.
  func verify() async throws -> VerificationReport

  /// Returns the space of overwritten and removed entries to the file system.
  ///
  /// ```swift
  /// try await store.removeAll(in: .prefix("2024-"))
  /// try await store.compact()  // frees the space on disk
  /// ```
  ///
  /// - Throws: ``StoreError`` with `unsupported` if this kind of store cannot release space; `closed`; `ioFailed`;
  ///   `full`.
  func compact() async throws

  /// Writes a complete copy of the store, as it is at one moment, that can be opened as a store of the same kind.
  ///
  /// ```swift
  /// try await store.backup(to: "/backups/users", compacting: true)
  /// ```
  ///
  /// - Parameters:
  ///   - path: The path of the copy. Nothing may exist there.
  ///   - compacting: A Boolean value that indicates whether the copy leaves out free space. It may take longer. Copies
  ///     of a store that keeps no free space are compact in either case.
  /// - Throws: ``StoreError`` with `invalidArgument` if something exists at `path`; `closed`; `ioFailed`; `full`.
  func backup(to path: String, compacting: Bool) async throws
}

extension DataStore {
  /// Reads every value of the store, one at a time, and reports the values that are damaged or cannot be decoded.
  ///
  /// ```swift
  /// let report = try await store.verifyEachEntry()  // for a store without a structure of its own
  /// print(report.entryCount, report.findings.count)
  /// ```
  ///
  /// - Throws: ``StoreError`` as the reads do, except for damage.
  public func verifyEachEntry() async throws -> VerificationReport {
    var report = VerificationReport(entryCount: 0)
    for try await key in keys(in: .all) {
      report.entryCount += 1
      do {
        _ = try await value(forKey: key)
      } catch let error as StoreError where error.isValueUnreadable {
        let message = VerificationReport.Finding.message(for: error, otherwise: error.message)
        report.findings.append(VerificationReport.Finding(key: key, place: error.store, message: message))
      }
    }
    return report
  }
}

extension MaintainableStore {
  /// Writes a complete copy of the store, free space included; see ``backup(to:compacting:)``.
  ///
  /// - Parameter path: The path of the copy. Nothing may exist there.
  /// - Throws: As ``backup(to:compacting:)``.
  public func backup(to path: String) async throws {
    try await backup(to: path, compacting: false)
  }
}

extension MaintainableStore {
  /// Checks this store, which is a backup, and writes a copy of it to the path of the store to restore.
  ///
  /// Open the backup with the access `readOnly`, and end the programs that use the damaged store first. Move all files
  /// of the damaged store away: the copy is refused if a journal, a log or another file of it is left, because the
  /// restored store would take it up.
  ///
  /// ```swift
  /// let backup = try await SQLiteStore<User>(path: "monday.sqlite", access: .readOnly)
  /// try await backup.restore(to: "users.sqlite")
  /// ```
  ///
  /// - Parameter path: The path of the restored store. Neither the store nor a file that belongs to it may exist.
  /// - Returns: The report of the verification. It has no findings.
  /// - Throws: ``StoreError``: `corrupted` with a ``DamagedBackupError`` if the verification has findings, with nothing
  ///   written; `invalidArgument` if something exists at the path; the errors of ``verify()`` and
  ///   ``backup(to:compacting:)``.
  @discardableResult
  public func restore(to path: String) async throws -> VerificationReport {
    let report = try await verify()
    guard report.findings.isEmpty else {
      throw StoreError(
        .corrupted, during: .restore, store: information.name,
        message: "the backup was not restored, because it was not found intact; restore another one, or copy the "
          + "readable entries",
        underlying: DamagedBackupError(report: report))
    }
    try await backup(to: path)
    return report
  }
}

/// The error of a backup that was not restored, because its verification has findings.
///
/// It is the ``StoreError/underlying`` error of ``MaintainableStore/restore(to:)``.
public struct DamagedBackupError: RedactedError {
  /// The report of the verification.
  public let report: VerificationReport

  /// Creates an error.
  ///
  /// - Parameter report: The report of the verification.
  public init(report: VerificationReport) {
    self.report = report
  }
}

extension DamagedBackupError: CustomStringConvertible {
  /// A text with the number of findings.
  public var description: String {
    "the verification of \(report.entryCount) entries has \(report.findings.count) findings"
  }
}

/// The size of a store.
///
/// ```swift
/// StoreStatistics(
///   entryCount: entryCount, bytesOnDisk: fileSize, details: [.init(name: "segments", value: 2)])
/// ```
public struct StoreStatistics: Sendable, Hashable {
  /// The number of entries.
  public var entryCount: Int

  /// The space that the store takes on disk, in bytes, or `nil` if the store has no files.
  public var bytesOnDisk: Int64?

  /// Further figures that depend on the kind of store, in the order they are shown.
  ///
  /// Their names are in lower camel case and end with the unit, if any, such as `journalBytes`.
  public var details: [Detail]

  /// A further figure of a store.
  public struct Detail: Sendable, Hashable {
    /// The name of the figure, in lower camel case.
    public var name: String

    /// The figure.
    public var value: Int64

    /// Creates a figure.
    ///
    /// - Parameters:
    ///   - name: The name, in lower camel case. It ends with the unit, if any.
    ///   - value: The figure.
    public init(name: String, value: Int64) {
      self.name = name
      self.value = value
    }
  }

  /// Creates statistics.
  ///
  /// - Parameters:
  ///   - entryCount: The number of entries.
  ///   - bytesOnDisk: The space on disk, in bytes. Defaults to `nil`, for a store without files.
  ///   - details: Further figures. Defaults to an empty list.
  public init(entryCount: Int, bytesOnDisk: Int64? = nil, details: [Detail] = []) {
    self.entryCount = entryCount
    self.bytesOnDisk = bytesOnDisk
    self.details = details
  }
}

extension VerificationReport {
  /// Adds the entries of a store, and the problems that are found in them.
  ///
  /// - Parameters:
  ///   - store: The name of the store.
  ///   - read: A closure that returns the first entries of a range, up to a limit: the key of each, and its problem, if
  ///     any. A slice at a time, because a long snapshot would keep a store from reusing the space of old values.
  /// - Throws: The error that `read` throws; the entries before it are added. After a finding, one that the store is damaged becomes a
  ///   finding, too.
  public mutating func addEntries(
    of store: String,
    _ read: @escaping @Sendable (_ range: KeyRange, _ limit: Int) async throws -> [(key: StoreKey, problem: String?)]
  ) async throws {
    do {
      for try await (key, problem) in ScanSequence(key: { $0.key }, read: read) {
        entryCount += 1
        if let problem { findings.append(Finding(key: key, place: store, message: problem)) }
      }
    } catch let error as StoreError where error.code == .corrupted && !findings.isEmpty {
      findings.append(Finding(key: nil, place: store, message: "the entries after \(entryCount) cannot be read"))
    }
  }
}

extension VerificationReport.Finding {
  /// Returns the message about a value that could not be decoded.
  ///
  /// - Parameters:
  ///   - error: The error of decoding it.
  ///   - message: The message if the value is damaged. Defaults to one for any damage.
  public static func message(
    for error: any Error, otherwise message: String = "the value cannot be decoded"
  ) -> String {
    guard let error = error as? StoreError else { return message }
    switch (error.code, error.underlying) {
    case (.keyUnavailable, _):
      return "the value was not checked, because its encryption key is not available"
    case (.undecodable, let reason as any RedactedError):
      return "the value cannot be decoded: \(reason)"
    default:
      return message
    }
  }
}

/// The result of the verification of a store.
///
/// ```swift
/// var report = VerificationReport(entryCount: 2)
/// report.findings.append(.init(key: "user:7", place: "page 12", message: "the checksum is wrong"))
/// ```
public struct VerificationReport: Sendable, Hashable {
  /// A damaged part of a store.
  public struct Finding: Sendable, Hashable {
    /// The key of the damaged entry, if it is known.
    public var key: StoreKey?

    /// The location of the damage as text for people, such as a file with a line and a column, or with a byte.
    public var place: String

    /// A text for people that describes the damage without any key or value.
    public var message: String

    /// Creates a finding.
    ///
    /// - Parameters:
    ///   - key: The key of the damaged entry, or `nil` if it is not known.
    ///   - place: The location of the damage, as text for people.
    ///   - message: A text for people that describes the damage.
    public init(key: StoreKey?, place: String, message: String) {
      self.key = key
      self.place = place
      self.message = message
    }
  }

  /// The number of entries that were read and checked, including damaged ones.
  public var entryCount: Int

  /// The damaged parts, in key order if their keys are known.
  ///
  /// It is empty if the store is intact.
  public var findings: [Finding]

  /// Creates a report.
  ///
  /// - Parameters:
  ///   - entryCount: The number of entries that were read and checked.
  ///   - findings: The damaged parts. Defaults to an empty list.
  public init(entryCount: Int, findings: [Finding] = []) {
    self.entryCount = entryCount
    self.findings = findings
  }
}
