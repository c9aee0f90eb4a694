#if ServiceLifecycle
public import Foundation
public import Larder

extension StoreTask where Store: MaintainableStore {
  /// A task that writes backups to a folder, and removes the oldest ones.
  ///
  /// A backup has a name such as `store-20261129T183000Z.backup`. It is written under another name and renamed when it is
  /// complete. A backup whose date is in the future counts as the oldest. The first run is due an interval after the newest backup in the
  /// folder, or immediately if there isn't one, so that a server that restarts often still writes them.
  ///
  /// Restore a backup with `MaintainableStore.restore(to:)`.
  ///
  /// ```swift
  /// let task = StoreTask<SQLiteStore<[UInt8]>>.backingUp(every: .seconds(3600), in: "/backups", named: "shop", keeping: 24)
  /// ```
  ///
  /// - Parameters:
  ///   - interval: The time from the end of a run to the next one.
  ///   - folder: The path of the folder. It is created if it does not exist. Use one folder for each store.
  ///   - name: The beginning of the names. Defaults to `store`.
  ///   - count: The number of backups to keep, at least 1.
  ///   - now: A closure that returns the wall-clock time. Defaults to the system time.
  public static func backingUp(
    every interval: Duration, in folder: String, named name: String = "store", keeping count: Int,
    now: @escaping @Sendable () -> Date = { Date.now }
  ) -> StoreTask {
    let backups = BackupFolder(path: folder, name: name)
    return StoreTask(
      "backup", every: interval,
      firstDelay: {
        let now = now()
        guard let newest = try backups.names(at: now).last.flatMap(backups.date), newest <= now else { return .zero }
        return max(.zero, interval - .microseconds(now.microsecondsSince1970 - newest.microsecondsSince1970))
      },
      run: { store in
        let partial = try backups.makePartial()
        try await store.backup(to: partial, compacting: true)
        try backups.complete(partial, at: now())
        for old in try backups.names(at: now()).dropLast(max(1, count)) { try backups.remove(old) }
      })
  }
}

/// The backups in a folder.
private struct BackupFolder {
  private static let suffix = ".backup"

  let path: String
  let name: String

  /// Returns the names of the complete backups, the oldest first.
  ///
  /// A date in the future was given by a wrong clock, so the age of its backup is unknown. Those are the first, because they
  /// must not displace newer ones.
  func names(at now: Date) throws -> [String] {
    guard FileManager.default.fileExists(atPath: path) else { return [] }
    let dated = try FileManager.default.contentsOfDirectory(atPath: path).compactMap { name in
      date(of: name).map { (name: name, date: $0) }
    }
    return dated.sorted { left, right in
      (left.date > now ? 0 : 1, left.name) < (right.date > now ? 0 : 1, right.name)
    }.map(\.name)
  }

  /// Returns the date of a backup, or `nil` for any other file.
  func date(of file: String) -> Date? {
    guard file.hasPrefix(name + "-"), file.hasSuffix(Self.suffix) else { return nil }
    return try? Date(String(file.dropFirst(name.count + 1).dropLast(Self.suffix.count)), strategy: style)
  }

  /// Removes what an interrupted run has left, and returns the path of a new backup.
  func makePartial() throws -> String {
    try FileManager.default.createDirectory(atPath: path, withIntermediateDirectories: true)
    let partial = path + "/" + name + ".partial"
    if FileManager.default.fileExists(atPath: partial) { try FileManager.default.removeItem(atPath: partial) }
    return partial
  }

  /// Gives a new backup its name.
  func complete(_ partial: String, at date: Date) throws {
    try FileManager.default.moveItem(atPath: partial, toPath: path + "/\(name)-\(date.formatted(style))" + Self.suffix)
  }

  func remove(_ file: String) throws {
    try FileManager.default.removeItem(atPath: path + "/" + file)
  }

  /// The format of a date, such as `20261129T183000Z`, whose order is that of the dates.
  private var style: Date.ISO8601FormatStyle {
    Date.ISO8601FormatStyle(dateSeparator: .omitted, timeSeparator: .omitted, timeZoneSeparator: .omitted)
  }
}
#endif
