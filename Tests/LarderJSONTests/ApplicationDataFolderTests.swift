import Testing

@testable import LarderJSON

@Suite struct ApplicationDataFolderTests {
  private func path(_ environment: [String: String]) -> String {
    ApplicationDataFolder.path(application: "app", environment: environment, home: "/home/ada")
  }

  #if os(Linux)
  @Test func `follows the base directory specification`() {
    #expect(path([:]) == "/home/ada/.local/share/app")
    #expect(path(["XDG_DATA_HOME": "/data"]) == "/data/app")
    #expect(path(["XDG_DATA_HOME": ""]) == "/home/ada/.local/share/app")
    #expect(
      path(["XDG_DATA_HOME": "relative"]) == "/home/ada/.local/share/app", "the specification ignores relative paths")
  }
  #endif

  @Test(arguments: [("/home/a ö", "/home/a ö"), ("/home/ada/", "/home/ada"), ("/", "")])
  func `the home folder is that of the environment`(_ variable: String, _ home: String) {
    #expect(ApplicationDataFolder.home(environment: ["HOME": variable]) == home)
  }

  @Test(arguments: [[:], ["HOME": ""], ["HOME": "relative"]]) func `without it the home folder is that of the system`(
    _ environment: [String: String]
  ) {
    #expect(ApplicationDataFolder.home(environment: environment).hasPrefix("/"))
  }

  @Test func `is absolute for this process`() {
    #expect(ApplicationDataFolder.current.hasPrefix("/"))
    #expect(!ApplicationDataFolder.current.contains("//"))
  }
}
