#if Crypto
import Foundation

/// The functions of libsecret and of GLib that are used, loaded while the program runs, so nothing is needed to build
/// it.
///
/// Sources: the reference documentation of libsecret 0.20 and GLib 2.74. All objects are untyped pointers.
struct LibSecret: Sendable {
  typealias Object = OpaquePointer
  typealias Errors = UnsafeMutablePointer<UnsafeMutableRawPointer?>

  /// The library, or `nil` if it is not installed.
  static let shared = LibSecret(path: "libsecret-1.so.0")

  // MARK: The session bus

  let busGet: @convention(c) @Sendable (_ type: Int32, _ cancellable: Object?, Errors) -> Object?
  let setExitOnClose: @convention(c) @Sendable (_ connection: Object, Int32) -> Void

  // MARK: The service and its collections

  let serviceType: @convention(c) @Sendable () -> UInt
  let openService:
    @convention(c) @Sendable (
      _ type: UInt, _ busName: UnsafePointer<CChar>?, _ flags: Int32, _ cancellable: Object?, Errors
    ) -> Object?
  let loadCollections: @convention(c) @Sendable (_ service: Object, _ cancellable: Object?, Errors) -> Int32
  let collections: @convention(c) @Sendable (_ service: Object) -> Object?
  let isCollectionLocked: @convention(c) @Sendable (_ collection: Object) -> Int32
  let collectionLabel: @convention(c) @Sendable (_ collection: Object) -> UnsafeMutablePointer<CChar>?

  // MARK: Items

  let search:
    @convention(c) @Sendable (
      _ service: Object, _ schema: Object?, _ attributes: Object, _ flags: Int32, _ cancellable: Object?, Errors
    ) -> Object?
  let isItemLocked: @convention(c) @Sendable (_ item: Object) -> Int32
  let secret: @convention(c) @Sendable (_ item: Object) -> Object?
  let setSecret: @convention(c) @Sendable (_ item: Object, _ value: Object, _ cancellable: Object?, Errors) -> Int32
  let store:
    @convention(c) @Sendable (
      _ service: Object, _ schema: Object?, _ attributes: Object, _ collection: UnsafePointer<CChar>,
      _ label: UnsafePointer<CChar>, _ value: Object, _ cancellable: Object?, Errors
    ) -> Int32
  let newValue:
    @convention(c) @Sendable (_ bytes: UnsafePointer<UInt8>, _ count: Int, _ type: UnsafePointer<CChar>) -> Object?
  let valueBytes: @convention(c) @Sendable (_ value: Object, _ count: UnsafeMutablePointer<UInt>) -> UnsafeRawPointer?
  let releaseValue: @convention(c) @Sendable (_ value: Object) -> Void

  // MARK: GLib

  let release: @convention(c) @Sendable (_ object: Object) -> Void
  let listCount: @convention(c) @Sendable (_ list: Object?) -> UInt32
  let listElement: @convention(c) @Sendable (_ list: Object?, _ index: UInt32) -> Object?
  let releaseList: @convention(c) @Sendable (_ list: Object?) -> Void
  let newTable:
    @convention(c) @Sendable (
      _ hash: UnsafeRawPointer, _ equal: UnsafeRawPointer, _ releaseKey: UnsafeRawPointer,
      _ releaseValue: UnsafeRawPointer
    ) -> Object?
  let insert:
    @convention(c) @Sendable (
      _ table: Object, _ key: UnsafeMutablePointer<CChar>?, _ value: UnsafeMutablePointer<CChar>?
    ) -> Int32
  let releaseTable: @convention(c) @Sendable (_ table: Object) -> Void
  let copyText: @convention(c) @Sendable (UnsafePointer<CChar>) -> UnsafeMutablePointer<CChar>?
  let releaseError: @convention(c) @Sendable (UnsafeMutableRawPointer) -> Void
  let domainName: @convention(c) @Sendable (_ domain: UInt32) -> UnsafePointer<CChar>?
  let free: @convention(c) @Sendable (UnsafeMutableRawPointer?) -> Void

  /// The addresses of `g_str_hash`, `g_str_equal` and `g_free`, which are the behavior of a table of texts.
  private let textHash, textEqual, freeAddress: UInt

  /// Creates a table of texts.
  func table(_ texts: [(String, String)]) -> Object? {
    guard let hash = UnsafeRawPointer(bitPattern: textHash), let equal = UnsafeRawPointer(bitPattern: textEqual),
      let free = UnsafeRawPointer(bitPattern: freeAddress), let table = newTable(hash, equal, free, free)
    else { return nil }
    for (name, value) in texts { _ = insert(table, copyText(name), copyText(value)) }
    return table
  }

  /// Loads the library.
  ///
  /// - Parameter path: The name of the file, or its path.
  /// - Returns: `nil` if there is no such file or it does not have the functions.
  init?(path: String) {
    // The library stays loaded, because GLib does not support unloading.
    guard let handle = dlopen(path, RTLD_NOW | RTLD_LOCAL) else { return nil }
    // The functions of GLib are found too, because libsecret depends on it.
    func load<Function>(_ name: String, as type: Function.Type = Function.self) throws(MissingSymbol) -> Function {
      guard let address = dlsym(handle, name) else { throw MissingSymbol() }
      return unsafeBitCast(address, to: type)
    }
    do {
      busGet = try load("g_bus_get_sync")
      setExitOnClose = try load("g_dbus_connection_set_exit_on_close")
      serviceType = try load("secret_service_get_type")
      openService = try load("secret_service_open_sync")
      loadCollections = try load("secret_service_load_collections_sync")
      collections = try load("secret_service_get_collections")
      isCollectionLocked = try load("secret_collection_get_locked")
      collectionLabel = try load("secret_collection_get_label")
      search = try load("secret_service_search_sync")
      isItemLocked = try load("secret_item_get_locked")
      secret = try load("secret_item_get_secret")
      setSecret = try load("secret_item_set_secret_sync")
      store = try load("secret_service_store_sync")
      newValue = try load("secret_value_new")
      valueBytes = try load("secret_value_get")
      releaseValue = try load("secret_value_unref")
      release = try load("g_object_unref")
      listCount = try load("g_list_length")
      listElement = try load("g_list_nth_data")
      releaseList = try load("g_list_free")
      newTable = try load("g_hash_table_new_full")
      insert = try load("g_hash_table_insert")
      releaseTable = try load("g_hash_table_unref")
      copyText = try load("g_strdup")
      releaseError = try load("g_error_free")
      domainName = try load("g_quark_to_string")
      free = try load("g_free")
      textHash = try load("g_str_hash")
      textEqual = try load("g_str_equal")
      freeAddress = try load("g_free")
    } catch {
      return nil
    }
  }

  private struct MissingSymbol: Error {}
}
#endif
