import ArgumentParser
import Larder
import LarderLMDB
import StoreAccess

/// `larder migrate`.
struct MigrateCommand: AsyncParsableCommand {
  static let configuration = CommandConfiguration(
    commandName: "migrate",
    abstract: "Copy an LMDB environment into one of the version of LMDB that the tool runs with.",
    discussion: """
      LMDB 0.9 and LMDB 1.0 cannot read each other's files. The verb reads both, and copies all databases byte for byte, \
      with the codecs of the stores. The new environment is compared with the old one, and appears at its path, where \
      nothing may exist, when it is complete. The old environment stays as it is. No program may have it open. If the verb is \
      interrupted, call it again. A damaged environment is refused; use larder salvage for its stores.

        larder migrate lmdb:shop lmdb:shop-new
      """)

  @Argument(help: ArgumentHelp("The environment, such as lmdb:shop.", valueName: "old"), completion: .file())
  var old: String
  @Argument(help: ArgumentHelp("The environment to create, such as lmdb:shop-new.", valueName: "new"))
  var new: String

  func run() async throws {
    let paths = try [old, new].map(MigrateCommand.path)
    let migration = try await LMDBEnvironment.migrate(from: paths[0], to: paths[1])
    let databases = migration.databaseCount == 1 ? "1 database" : "\(migration.databaseCount) databases"
    Diagnostics.writeLine(
      "migrated \(databases) with \(EntryCount.text(migration.entryCount)) from LMDB \(migration.oldVersion) to LMDB "
        + "\(migration.newVersion)")
  }

  /// Returns the path of an environment.
  ///
  /// - Throws: ``CommandFailure`` if the URL is one of another kind of store, or names a store in an environment.
  private static func path(of text: String) throws -> String {
    let url = try StoreURL(text)
    let provider = LMDBStoreProvider()
    guard url.scheme == provider.scheme else {
      throw CommandFailure(
        .usage, "\(url) is no LMDB environment", advice: "Other kinds of store have no versions to migrate.")
    }
    let path = try provider.environmentPath(of: url)
    guard path.utf8.elementsEqual(url.location.utf8) else {
      throw CommandFailure(
        .usage, "\(url) names a store in an environment, which is migrated as a whole",
        advice: "Give lmdb:\(path). For a path with #, rename the environment first.")
    }
    return path
  }
}
