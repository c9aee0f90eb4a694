import Foundation
import Larder
import Testing

@testable import LarderCommand
@testable import StoreAccess

/// Tests that the guide to the tool and the README are correct, and that the guide is complete.
@Suite struct GuideTests {
  private let repository = URL(fileURLWithPath: #filePath).appendingPathComponent("../../../../..").standardized

  private func page(_ path: String) throws -> String {
    try String(contentsOf: repository.appendingPathComponent(path), encoding: .utf8)
  }

  /// Returns the pages of the guide to the tool as one text, in the order of the table on the first page.
  private func guide() throws -> String {
    let first = try page("Docs/CommandLine.md")
    let others = first.matches(of: /\n\| \[[^\]]*\]\((CommandLine\/\w+\.md)\)/).map { String($0.output.1) }
    return try ([first] + others.map { try page("Docs/\($0)") }).joined(separator: "\n")
  }

  /// Returns the headings of a level, and the text below each of them.
  private func sections(_ level: String, of page: String) -> [(heading: String, text: String)] {
    page.components(separatedBy: "\n\(level) ").dropFirst().map { section in
      let heading = section.prefix { $0 != "\n" }
      let text = section.dropFirst(heading.count).components(separatedBy: "\n## ")[0]
      return (String(heading), text)
    }
  }

  @Test(arguments: ["the guide", "README.md"])
  func `every example prints the output on the page`(path: String) async throws {
    let examples = ConsoleExample.examples(in: path == "README.md" ? try page(path) : try guide())
    #expect(!examples.isEmpty)
    let folder = try TemporaryFolder()
    try await HTTPTests.writeCache(at: folder.file("proxy"))
    let home = URL(fileURLWithPath: folder.path).resolvingSymlinksInPath().path
    for example in examples {
      let run = try await Tool.shell("cd \"$1\"; { \(example.command); } 2>&1", folder.path)
      let output = ConsoleExample.withoutTimes(run.output.replacing(home, with: "/home/ada"))
      #expect(output == ConsoleExample.withoutTimes(example.output), "\(path): \(example.command)")
    }
  }

  @Test func `the version is the one in the readme and the change log`() throws {
    #expect(try page("README.md").contains("from: \"\(LarderCommand.version)\""))
    #expect(try page("CHANGELOG.md").contains("\n## \(LarderCommand.version) ("))
  }

  @Test func `the worker of the guide processes a queue`() async throws {
    guard try await Tool.shell("command -v jq").status == 0 else {
      print("the worker of the guide is not run, because jq is missing")
      return
    }
    let scripts = try guide().components(separatedBy: "```sh\n").dropFirst()
      .compactMap { $0.components(separatedBy: "\n```").first }
    let worker = try #require(scripts.first { $0.contains("larder queue receive") })
    let folder = try TemporaryFolder()
    // One mail cannot be sent. When none is left, `sleep` ends the worker.
    _ = try folder.write(
      "#!/bin/sh\nmail=$(cat)\ncase $mail in *bob*) exit 1;; esac\necho $mail >> sent\n", to: "send-mail")
    _ = try folder.write("#!/bin/sh\nkill $PPID\n", to: "sleep")
    let enqueue = ["ada", "bob", "eve"].map {
      "larder queue enqueue queue:mail '{\"to\": \"\($0)\"}' --id \($0) > /dev/null"
    }
    let run = try await Tool.shell(
      """
      cd "$1" && chmod +x send-mail sleep && PATH="$1:$PATH" || exit 99
      \(enqueue.joined(separator: "\n"))
      trap 'exit 7' TERM
      \(worker)
      """, folder.path)
    #expect(run == ToolRun(status: 7, output: "", errors: ""))
    let sent = try String(contentsOfFile: folder.file("sent"), encoding: .utf8)
    #expect(sent == "{ \"to\": \"ada\" }\n{ \"to\": \"eve\" }\n")
    let stat = try await Tool.larder("queue", "stat", "queue:\(folder.file("mail"))")
    // The delay of the mail that was not sent may be over.
    let isLeft = [(0, 1), (1, 0)].contains { waiting, delayed in
      stat.output.hasPrefix(#"{"waiting":\#(waiting),"delayed":\#(delayed),"leased":0,"dead":0,"#)
    }
    #expect(isLeft, "\(stat)")
  }

  @Test func `every verb and every option is in the guide`() async throws {
    let guide = try guide()
    let sections = sections("##", of: guide).filter { $0.heading.hasPrefix("`") }
    #expect(sections.map(\.heading).sorted() == LarderCommand.verbs.map { "`\($0)`" }.sorted())
    for (heading, text) in sections {
      let verb = heading.filter { $0 != "`" }
      let examples = text.split(separator: "\n").filter { $0.hasPrefix("$ ") }
      #expect(examples.contains { $0.contains(" larder \(verb) ") }, "\(verb)")
      for words in LarderCommand.leaves(of: [verb]) {
        #expect(text.contains("larder \(words.joined(separator: " ")) "), "\(words)")
        let help = try await ToolRun.run(Tool.path, words + ["--help"]).output
        // The generator of the manual page drops other characters.
        let foreign = help.filter { !$0.isASCII }
        #expect(foreign.isEmpty, "\(words) \(foreign)")
        for option in Set(help.matches(of: /--[a-z]+(-[a-z]+)*/).map { String($0.output.0) }) {
          let isCommon = [
            "--help", "--version", "--key-hex", "--metrics", "--wait", "--read-only", "--read-write", "--immutable",
            "--key-ring", "--purpose", "--password-file", "--layout", "--codec",
          ]
          .contains(option)
          #expect(isCommon || text.contains(option), "\(words) \(option)")
        }
      }
    }
    #expect(guide.contains("`--key-hex`") && guide.contains("`--metrics`"))
    #expect(
      ["`--key-ring`", "`--purpose`", "`--password-file`", "`--layout ", "`--codec "].allSatisfy { guide.contains($0) })
    #expect(["`--wait`", "`--read-only`", "`--read-write`", "`--immutable`"].allSatisfy { guide.contains($0) })
  }

  @Test func `every kind of store is in the guide`() throws {
    let stores = try #require(sections("##", of: page("Docs/CommandLine.md")).first { $0.heading == "Stores" }?.text)
    let schemes = stores.matches(of: /\n\| `([a-z-]+:)/).map { String($0.output.1) }
    #expect(schemes == Stores.registry.providers.map { "\($0.scheme):" })
  }

  @Test func `the table of exit codes is complete`() throws {
    let codes = try #require(sections("##", of: page("Docs/CommandLine.md")).first { $0.heading == "Exit codes" }?.text)
    let rows = codes.matches(of: /\n\| (\d+) \| ([^|]*) \|/).map { "\($0.output.1) \($0.output.2)" }
    #expect(rows == ExitStatus.allCases.map { "\($0.rawValue) \($0.summary)" })
  }
}
