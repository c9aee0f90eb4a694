import LarderCBOR
import LarderLMDB

/// A service that keeps secrets.
struct Vault: Sendable {
  func secret(named name: String) async throws -> [UInt8]? { standIn() }
  func replaceSecret(named name: String, expecting old: [UInt8]?, with new: [UInt8]) async throws -> Bool { standIn() }
}

var ring: KeyRing {
  get { standIn() }
  set {}
}
var password: KeyFilePassword { standIn() }
var recoveryPassword: KeyFilePassword { standIn() }
var text: String { standIn() }
var secret: String { standIn() }
var usbStick: String { standIn() }
var keyFolder: String { standIn() }
var users: LMDBStore<User> { standIn() }
var stored: StoreKey { standIn() }

func askForPassword() {}
