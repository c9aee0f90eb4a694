import ArgumentParser
import Foundation
import Larder
import LarderExpiry
import LarderFiles
import StoreAccess

/// `larder compact`.
struct CompactCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "compact",
    abstract: "Reclaim the space of overwritten and removed entries.",
    discussion: """
      Unsupported for kinds of store that cannot reclaim space or have none to reclaim. For lmdb:, backup --compact writes \
      a copy without that space.

        larder compact json:users.json
      """)

  @OptionGroup var store: StoreArgument

  func run() async throws {
    try await StoreSession.run(store.target) { store, _ in
      try await store.present.compact()
    }
  }
}

/// `larder backup`.
struct BackupCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "backup",
    abstract: "Back up a store, as it is at one moment, to a new path.",
    discussion: """
      The backup is a store of the same kind, and is complete and durable when the verb ends. It includes all other stores \
      in the same file or folder, and the compression dictionaries beside it. The path must not exist. Processes that share \
      the store, as with lmdb:, can continue to use it in the meantime.

      With --keep, the path is a folder of backups. Their names consist of the name of the store, a digest of its path, a \
      number and the time in UTC, such as users.json-5f2b8c01d3aa-000017-20261121T063000Z. If there are more backups of \
      this store than the given number, those with the lowest numbers are removed. The new backup, the backups of other \
      stores and other names in the folder are left alone. For regular backups, call it from cron or a timer of systemd.

        larder backup json:users.json users-2026-11-21.json
        larder backup lmdb:shop shop-backup --compact
        larder backup lmdb:shop /var/backups --keep 14
      """)

  @OptionGroup var store: StoreArgument
  @OptionGroup var access: AccessOption
  @Argument(help: "The path of the backup.", completion: .file()) var path: String
  @Flag(name: .customLong("compact"), help: "Omit the free space of the store.") var isCompacting = false
  @Option(
    help: ArgumentHelp("Back up into the folder, and keep only the latest backups of the store.", valueName: "count"))
  var keep: Int?

  func validate() throws {
    try BackupPath.check(path)
    guard keep ?? 1 >= 1 else { throw ValidationError("--keep must be at least 1") }
  }

  func run() async throws {
    guard let keep else { return try await backUp(to: path) }
    let folder = BackupFolder(
      path: path, scheme: try StoreURL(store.url).scheme,
      rotation: BackupRotation(ofStoreAt: try Stores.absolutePath(of: store.url)))
    let name = try folder.newName()
    try await backUp(to: "\(path)/\(name)")
    // Only after a backup that is complete.
    try folder.removeSurplus(after: name, keeping: keep)
  }

  private func backUp(to path: String) async throws {
    try await StoreSession.run(store.target, access: access.storeAccess) { store, _ in
      try await store.present.backup(to: path, compacting: isCompacting)
    }
  }
}

/// A folder of backups on disk.
private struct BackupFolder {
  let path: String
  /// The scheme of the store and of its backups.
  let scheme: String
  let rotation: BackupRotation

  /// Returns the name of the next backup.
  ///
  /// - Throws: ``CommandFailure`` if the folder cannot be read.
  func newName() throws -> String { rotation.newName(beside: try names(), at: .now) }

  /// Removes the surplus backups after a new one, and reports those whose store is unknown.
  ///
  /// - Throws: ``CommandFailure`` if the folder cannot be read or a backup cannot be removed.
  func removeSurplus(after name: String, keeping count: Int) throws {
    let names = try names()
    for older in rotation.surplus(among: names, after: name, keeping: count) {
      do {
        // A program that opened the backup may have left a log, a journal or a lock beside it.
        let files = try Stores.files(at: "\(path)/\(older)", scheme: scheme)
        for path in [files.dictionariesPath] + files.companions.map({ files.path + $0.suffix }) + [files.path] {
          try remove(path)
        }
      } catch {
        throw CommandFailure(
          .inputOutput,
          "the backup \(path)/\(name) is complete, but an older one cannot be removed: \(error.localizedDescription)",
          advice: "Remove \(older) yourself.")
      }
    }
    let foreign = BackupRotation.namesWithoutStore(among: names)
    guard let first = foreign.first else { return }
    Diagnostics.writeLine(
      "larder: \(path) has \(foreign.count == 1 ? "1 backup" : "\(foreign.count) backups") whose name does not say "
        + "which store it is of, such as \(first). --keep never removes them; remove those that you no longer need.")
  }

  /// Removes a file, or a folder with everything in it, if there is one.
  private func remove(_ path: String) throws {
    do {
      try FileManager.default.removeItem(atPath: path)
    } catch CocoaError.fileNoSuchFile {
      // The backup has no such file, or another call has removed it.
    }
  }

  private func names() throws -> [String] {
    do {
      return try FileManager.default.contentsOfDirectory(atPath: path)
    } catch {
      throw CommandFailure(
        .inputOutput, "the folder of the backups cannot be read: \(error.localizedDescription)",
        advice: "With --keep, give an existing folder.")
    }
  }
}

/// `larder restore`.
struct RestoreCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "restore",
    abstract: "Check a backup, and restore it to a new path.",
    discussion: """
      The path must not exist: stop the programs that use the damaged store, and move it away first, with all files that \
      belong to it, such as users.sqlite-wal and users.json.journal. If one of them is left, nothing is restored, because \
      the restored store would take it up. A damaged backup is not restored: the findings are printed as by verify, and the \
      verb exits with 2. To check encrypted values, it needs their keys.

        larder restore json:users-2026-11-21.json users.json
        larder restore lmdb:/var/backups/shop-0c84d1b7a925-000017-20261121T063000Z shop
      """)

  @OptionGroup var backup: StoreArgument
  @OptionGroup var access: AccessOption
  @Argument(help: "The path of the restored store.", completion: .file()) var path: String

  func validate() throws {
    try BackupPath.check(path)
  }

  func run() async throws {
    let report = try await StoreSession.run(backup.target, access: access.storeAccess) { backup, output in
      try backup.checkNotLocked()
      do {
        return try await backup.present.restore(to: path)
      } catch let error as StoreError {
        guard let damage = error.underlying as? DamagedBackupError else { throw error }
        for finding in damage.report.findings {
          try output.writeLine { EntryLine.append(finding, to: &$0) }
        }
        throw CommandFailure(
          .damaged, "the backup has the findings above and was not restored",
          advice: "Restore another one, or copy what is readable with `larder salvage`.")
      }
    }
    Diagnostics.writeLine("restored \(EntryCount.text(report.entryCount))")
  }
}

/// The paths of backups.
private enum BackupPath {
  /// Refuses an empty path, and a URL, which as a path would name a file that the user did not mean.
  ///
  /// - Throws: `ValidationError`.
  static func check(_ path: String) throws {
    guard !path.isEmpty else { throw ValidationError("the path of the backup must not be empty") }
    guard let scheme = Stores.registry.providers.map(\.scheme).first(where: { path.hasPrefix("\($0):") }) else {
      return
    }
    throw ValidationError("the backup needs a path, not a URL; omit \(scheme):, or write './\(path)'")
  }
}

/// `larder purge`.
struct PurgeCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "purge",
    abstract: "Remove the expired entries, and reclaim their space.",
    discussion: """
      No verb shows expired entries, but they take space until they are purged. An entry that is overwritten in the \
      meantime stays, and so does a damaged one.

        larder purge json:sessions.json
      """)

  @OptionGroup var store: StoreArgument

  func run() async throws {
    let count = try await StoreSession.run(store.target) { store, _ in
      try await store.expiring().purgeExpired()
    }
    Diagnostics.writeLine("purged \(EntryCount.text(count))")
  }
}
