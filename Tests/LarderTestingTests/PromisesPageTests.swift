import Foundation
import Testing

/// The page `Modules/Larder/Larder.docc/Promises.md` names the file of every case, and no other.
@Suite struct PromisesPageTests {
  private let modules = URL(filePath: #filePath).deletingLastPathComponent().appending(path: "../../Modules")

  @Test func `the page names the cases of every promise`() throws {
    let page = try String(contentsOf: modules.appending(path: "Larder/Larder.docc/Promises.md"), encoding: .utf8)
    let named = Set(page.matches(of: /`([A-Za-z]+Cases)`/).map { String($0.1) })
    let folder = modules.appending(path: "Testing/LarderTesting/Cases")
    let files = try FileManager.default.contentsOfDirectory(atPath: folder.path)
    #expect(named == Set(files.map { String($0.dropLast(".swift".count)) }))
    let numbers = page.matches(of: #/\n\| (\d+)\. /#).compactMap { Int($0.1) }
    #expect(numbers == Array(1...12))
  }
}
