import Foundation
import LarderTesting
import Testing

@testable import LarderCommand
@testable import StoreAccess

@Suite struct BackupRotationTests {
  private let users = BackupRotation(ofStoreAt: "/srv/users.json")
  private let now = Date(timeIntervalSince1970: 1_795_000_000)

  /// Adds a backup, and returns its name and the names that are then in the folder.
  private func backUp(
    _ rotation: BackupRotation, into names: [String], at date: Date, keeping count: Int
  ) -> (new: String, names: [String]) {
    let new = rotation.newName(beside: names, at: date)
    let surplus = rotation.surplus(among: names + [new], after: new, keeping: count)
    return (new, (names + [new]).filter { !surplus.contains($0) })
  }

  @Test func `the name has the store the number and the time`() {
    let name = users.newName(beside: [], at: now)
    #expect(name.wholeMatch(of: /users\.json-[0-9a-f]{12}-000001-20261118T110640Z/) != nil, "\(name)")
    #expect(users.newName(beside: [name], at: now).contains("-000002-"))
    let million = name.replacing("000001", with: "1000000")
    #expect(users.newName(beside: [name, million], at: now).contains("-1000001-"))
    let long = BackupRotation(ofStoreAt: "/srv/" + String(repeating: "é", count: 127))
    #expect(long.newName(beside: [], at: now).utf8.count < 200)
  }

  /// The new backup stays, and so do the latest ones before it, even if the clock jumps.
  @Test func theClockDoesNotMatter() {
    var generator = SeededGenerator(seed: SeededGenerator.seedOfProcess, purpose: "theClockDoesNotMatter")
    print("LARDER_SEED=\(SeededGenerator.seedOfProcess)")
    for count in 1...4 {
      var (made, names): ([String], [String]) = ([], [])
      for _ in 0..<20 {
        let wrong = now.addingTimeInterval(.random(in: -1e9...2e9, using: &generator))
        let (new, left) = backUp(users, into: names.shuffled(using: &generator), at: wrong, keeping: count)
        made.append(new)
        names = left
        #expect(Set(names) == Set(made.suffix(count)))
      }
    }
  }

  @Test func `other stores and other names stay`() {
    let orders = BackupRotation(ofStoreAt: "/srv/orders.json")
    let namesake = BackupRotation(ofStoreAt: "/srv/old/users.json")
    var names = ["20260101T000000Z", "20991231T235959Z", "notes", "users.json-000001-20260101T000000Z"]
    let others = names
    var last: Set<String> = []
    for round in 0..<3 {
      last = []
      for rotation in [users, orders, namesake] {
        let (new, left) = backUp(rotation, into: names, at: now.addingTimeInterval(Double(round)), keeping: 1)
        names = left
        last.insert(new)
      }
    }
    #expect(Set(names) == last.union(others))
    #expect(BackupRotation.namesWithoutStore(among: names) == ["20260101T000000Z", "20991231T235959Z"])
  }

  @Test func `backups of the same time do not remove each other`() {
    let first = users.newName(beside: [], at: now)
    let second = users.newName(beside: [], at: now.addingTimeInterval(1))
    #expect(users.surplus(among: [first, second], after: first, keeping: 1) == [])
    #expect(users.surplus(among: [first, second], after: second, keeping: 1) == [])
    let third = users.newName(beside: [first, second], at: now)
    // A slow backup that ends late removes none that is newer.
    #expect(users.surplus(among: [first, second, third], after: first, keeping: 1) == [])
    #expect(Set(users.surplus(among: [first, second, third], after: third, keeping: 1)) == [first, second])
  }

  /// A slow backup that began earlier may still be writing to its temporary folder.
  @Test func `temporary folders stay`() {
    let first = users.newName(beside: [], at: now)
    let running = "\(users.newName(beside: [first], at: now)).larder-tmp-0123456789abcdef"
    let new = users.newName(beside: [first, running], at: now)
    #expect(new.contains("-000003-"))
    let later = "\(users.newName(beside: [first, running, new], at: now)).larder-tmp-0123456789abcdef"
    #expect(users.surplus(among: [first, running, new, later], after: new, keeping: 1) == [first])
  }
}
