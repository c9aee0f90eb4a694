import Foundation
import Larder
import LarderTesting
import Testing

@testable import LarderCommand
@testable import StoreAccess

@Suite struct DiffTests {
  private let folder: TemporaryFolder

  init() throws {
    folder = try TemporaryFolder()
  }

  @Test(arguments: StoreKind.pairs(for: "differencesArePrinted"))
  func differencesArePrinted(between firstKind: StoreKind, and secondKind: StoreKind) async throws {
    let (first, second) = (firstKind.url("first", in: folder), secondKind.url("second", in: folder))
    func lines(_ numbers: [Int]) -> String {
      numbers.map { "{\"key\":\"k\($0)\",\"value\":{\"n\":\($0)}}\n" }.joined()
    }
    #expect(try await Tool.larder("import", first, input: lines([1, 2, 3])).status == 0)
    #expect(try await Tool.larder("import", second, input: lines([1, 2, 3])).status == 0)
    #expect(try await Tool.larder("diff", first, second) == .done())
    #expect(try await Tool.larder("set", second, "k0", "0").status == 0)
    #expect(try await Tool.larder("set", second, "k2", "null").status == 0)
    #expect(try await Tool.larder("remove", second, "k3").status == 0)
    let run = try await Tool.larder("diff", first, second)
    #expect(run.status == 5 && run.errors == "")
    #expect(
      run.output == """
        {"key":"k0","difference":"only in second"}
        {"key":"k2","difference":"value"}
        {"key":"k3","difference":"only in first"}

        """)
    #expect(try await Tool.larder("diff", first, second, "--prefix", "k1") == .done())
  }

  @Test func `a missing store is not empty`() async throws {
    let store = StoreKind.allCases[0].url("first", in: folder)
    #expect(try await Tool.larder("set", store, "a", "1").status == 0)
    #expect(try await Tool.larder("diff", store, "json:\(folder.file("missing"))").status == 66)
  }

  @Test(arguments: StoreKind.allCases) func `a sample is part of the store`(_ kind: StoreKind) async throws {
    let url = kind.url("store", in: folder)
    let all = (100..<140).map { "{\"key\":\"\($0)\",\"value\":\($0)}" }
    #expect(try await Tool.larder("import", url, input: all.joined(separator: "\n") + "\n").status == 0)
    func sample(_ arguments: String...) async throws -> [String] {
      let run = try await ToolRun.run(Tool.path, ["sample", url] + arguments)
      #expect(run.status == 0 && run.errors == "")
      return run.output.split(separator: "\n").map(String.init)
    }
    let ten = try await sample()
    #expect(ten.count == 10 && ten == ten.sorted() && Set(ten).isSubset(of: all))
    #expect(try await sample("--limit", "99") == all)
    #expect(try await sample("--limit", "3", "--from", "137") == Array(all.suffix(3)))
    #expect(try await Tool.larder("sample", url, "--limit", "0").status == 64)
  }
}
