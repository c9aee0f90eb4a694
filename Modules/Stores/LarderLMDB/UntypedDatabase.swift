#if LMDB
import CLMDB
import Larder

/// An open named database whose type of values is not chosen yet.
struct UntypedDatabase: UntypedStore {
  /// The codec of a new store, unless another one is chosen.
  static let defaultCodecName = "cbor"

  let name: String
  let codecName: String
  let handle: EnvironmentHandle
  let identifier: MDB_dbi

  /// The environment, if it is closed together with the store.
  let ownEnvironment: LMDBEnvironment?

  /// Opens a named database; see ``LMDBStore``.
  ///
  /// If `newCodecName` is `nil`, a new store records ``defaultCodecName``.
  ///
  /// - Throws: ``StoreError``, with `invalidArgument` if another program created the database, and no codec is chosen.
  init(
    in environment: LMDBEnvironment, isOwned: Bool, name: String, createsIfMissing: Bool, newCodecName: String?
  ) async throws {
    let fullName = name == LMDBStore<Never>.defaultName ? environment.name : "\(environment.name)#\(name)"
    guard
      (1...StoreKey.maximumLength).contains(name.utf8.count), !name.utf8.contains(0), name != StoreCatalog.name
    else {
      throw StoreError(
        .invalidArgument, during: .open, store: fullName,
        message: "a store name must have 1 to \(StoreKey.maximumLength) bytes without NUL, and must not be "
          + "\(StoreCatalog.name), which is reserved")
    }
    self.name = name
    handle = EnvironmentHandle(
      of: environment.handle.environment, dependingOn: environment.handle, name: fullName)
    let recorded: String?
    (identifier, recorded) = try await handle.withWriter(during: .open) { [handle] in
      try await $0.openDatabase(
        for: handle, named: name, createsIfMissing: createsIfMissing, newCodecName: newCodecName, turn: $1)
    }
    codecName = recorded ?? newCodecName ?? UntypedDatabase.defaultCodecName
    ownEnvironment = isOwned ? environment : nil
  }

  func typed<Value: Sendable>(codec: some Codec<Value>) async throws -> AnyDataStore<Value> {
    AnyDataStore(try LMDBStore(self, codec: codec))
  }
}
#endif
