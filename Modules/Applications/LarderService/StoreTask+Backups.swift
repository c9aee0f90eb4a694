#if ServiceLifecycle
public import Foundation
public import Larder

extension StoreTask where Store: MaintainableStore {
  /// A task that writes backups to a folder, verifies each, and then removes the oldest ones.
  ///
  /// ```swift
  /// let task = StoreTask<SQLiteStore<[UInt8]>>.backingUp(every: .seconds(3600), in: "/backups", keeping: 24) {
  ///   try await SQLiteStore<[UInt8]>(path: $0, codec: .raw, access: .readOnly)
  /// }
  /// ```
  ///
  /// A backup has a name such as `store-20261129T183000Z.backup`, which it gets when it is complete and durable. It is then
  /// opened and verified. If that fails, the new backup is removed, the error is reported, and all older ones stay.
  ///
  /// A backup whose date is in the future counts as the oldest. The first run is due an interval after the newest backup in the
  /// folder, or immediately if there isn't one, so that a server that restarts often still writes them.
  ///
  /// Restore a backup with `MaintainableStore.restore(to:)`.
  ///
  /// - Parameters:
  ///   - interval: The time from the end of a run to the next one.
  ///   - folder: The path of the folder. It is created if it does not exist. Use one folder for each store.
  ///   - name: The beginning of the names. Defaults to `store`. Files whose names begin with that of a backup, such as its
  ///     dictionaries, are removed together with it.
  ///   - count: The number of backups to keep, at least 1.
  ///   - now: A closure that returns the wall-clock time. Defaults to the system time.
  ///   - open: A closure that opens the backup at a path for reading only. It is closed after the verification.
  public static func backingUp<Backup: MaintainableStore>(
    every interval: Duration, in folder: String, named name: String = "store", keeping count: Int,
    now: @escaping @Sendable () -> Date = { Date.now },
    opening open: @escaping @Sendable (_ path: String) async throws -> Backup
  ) -> StoreTask {
    let backups = BackupFolder(folder: folder, prefix: name)
    return StoreTask(
      "backup", every: interval,
      firstDelay: {
        let now = now()
        guard let newest = try backups.names(at: now).last.flatMap(backups.date), newest <= now else { return .zero }
        return max(.zero, interval - .microseconds(now.microsecondsSince1970 - newest.microsecondsSince1970))
      },
      makeRun: {
        { store in
          try backups.create()
          let new = backups.name(at: now())
          try await store.backup(to: backups.path(of: new), compacting: true)
          do {
            try await verify(try await open(backups.path(of: new)))
          } catch {
            // Otherwise it would displace one that was verified.
            try backups.remove(new)
            throw error
          }
          for old in try backups.names(at: now()).dropLast(max(1, count)) where old != new { try backups.remove(old) }
        }
      })
  }

  /// Verifies a backup, and closes it.
  ///
  /// - Throws: `StoreError` with `corrupted` if the verification has findings; the errors of reading and closing it.
  private static func verify(_ backup: some MaintainableStore) async throws {
    let report: VerificationReport
    do {
      report = try await backup.verify()
    } catch {
      try await backup.close()
      throw error
    }
    try await backup.close()
    guard report.findings.isEmpty else {
      throw StoreError(
        .corrupted, during: .backup, store: backup.information.name,
        message: "the new backup was removed, because it was not found intact; verify the store",
        underlying: DamagedBackupError(report: report))
    }
  }
}

/// The backups in a folder.
private struct BackupFolder {
  private static let suffix = ".backup"

  let folder: String
  let prefix: String

  /// Returns the name of a backup.
  func name(at date: Date) -> String { "\(prefix)-\(date.formatted(style))" + Self.suffix }

  /// Returns the path of a backup.
  func path(of name: String) -> String { folder + "/" + name }

  /// Returns the names of the complete backups, the oldest first.
  ///
  /// A date in the future was given by a wrong clock, so the age of its backup is unknown. Those are the first, because they
  /// must not displace newer ones.
  func names(at now: Date) throws -> [String] {
    guard FileManager.default.fileExists(atPath: folder) else { return [] }
    let dated = try FileManager.default.contentsOfDirectory(atPath: folder).compactMap { name in
      date(of: name).map { (name: name, date: $0) }
    }
    return dated.sorted { left, right in
      (left.date > now ? 0 : 1, left.name) < (right.date > now ? 0 : 1, right.name)
    }.map(\.name)
  }

  /// Returns the date of a backup, or `nil` for any other file.
  func date(of file: String) -> Date? {
    guard file.hasPrefix(prefix + "-"), file.hasSuffix(Self.suffix) else { return nil }
    return try? Date(String(file.dropFirst(prefix.count + 1).dropLast(Self.suffix.count)), strategy: style)
  }

  /// Creates the folder if it does not exist.
  func create() throws {
    try FileManager.default.createDirectory(atPath: folder, withIntermediateDirectories: true)
  }

  /// Removes a backup and the files beside it, which have its name and more.
  func remove(_ name: String) throws {
    for file in try FileManager.default.contentsOfDirectory(atPath: folder) where file.hasPrefix(name) {
      try FileManager.default.removeItem(atPath: path(of: file))
    }
  }

  /// The format of a date, such as `20261129T183000Z`, whose order is that of the dates.
  private var style: Date.ISO8601FormatStyle {
    Date.ISO8601FormatStyle(dateSeparator: .omitted, timeSeparator: .omitted, timeZoneSeparator: .omitted)
  }
}
#endif
