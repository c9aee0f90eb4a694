import Foundation

import LarderCrypto
import Security

// Checks of the keychain source, over a module `Security` that behaves as Apple documents.

func check(_ condition: Bool, _ promise: String) {
  guard !condition else { return }
  FileHandle.standardError.write(Data("broken: \(promise)\n".utf8))
  exit(1)
}

func code(of body: () async throws -> Void) async -> KeyRingError.Code? {
  do {
    try await body()
    return nil
  } catch {
    return (error as? KeyRingError)?.code
  }
}

func source(_ account: String, group: String? = nil) -> KeychainKeySource {
  .keychain(service: "service", account: account, accessGroup: group)
}

let (first, second) = (Array("first".utf8), Array("second".utf8))
let keys = source("keys")

check(try await keys.load() == nil, "an empty keychain has no keys")
try await keys.save(first, replacing: nil)
check(try await keys.load() == first, "the keys are loaded as they were saved")
check(
  StandIn.items.map(\.accessible) == [kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly], "the default accessibility")
check(await code { try await keys.save(second, replacing: nil) } == .changed, "existing keys are not added again")
check(await code { try await keys.save(first, replacing: second) } == .changed, "the keys are compared")
try await keys.save(second, replacing: first)
check(try await keys.load() == second, "the keys are updated")
check(StandIn.items.count == 1, "the keys are updated in place")
check(try await source("other").load() == nil, "another account has other keys")

StandIn.setLock(.locked)
check(try await keys.load() == second, "the keys can be read from the first unlock on")
StandIn.setLock(.beforeFirstUnlock)
check(await code { _ = try await keys.load() } == .unavailable, "before the first unlock, the keys are unavailable")
check(
  await code { try await source("new").save(first, replacing: nil) } == .unavailable,
  "before the first unlock, no keys are added")
StandIn.setLock(.unlocked)
check(await code { _ = try await source("keys", group: "foreign").load() } == .notPermitted, "a foreign access group")

for accessible in KeychainKeySource.Accessibility.allCases {
  let account = "\(accessible)"
  let source: KeychainKeySource = .keychain(service: "service", account: account, accessible: accessible)
  try await source.save(first, replacing: nil)
  let names = [
    KeychainKeySource.Accessibility.afterFirstUnlockThisDeviceOnly: kSecAttrAccessibleAfterFirstUnlockThisDeviceOnly,
    .afterFirstUnlock: kSecAttrAccessibleAfterFirstUnlock,
    .whenUnlockedThisDeviceOnly: kSecAttrAccessibleWhenUnlockedThisDeviceOnly,
    .whenUnlocked: kSecAttrAccessibleWhenUnlocked,
  ]
  check(StandIn.items.first { $0.account == account }?.accessible == names[accessible], "accessible: \(accessible)")
}
print("all checks passed")
