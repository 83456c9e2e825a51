// A certified OpenID provider as the authorization server of corbie. Its only user is always logged in and grants
// clients read and write, never more.
//
//   oauth_issuer.mjs PORT

import { generateKeyPairSync } from "node:crypto";
import { createServer } from "node:http";
import { Provider } from "oidc-provider";

const port = Number(process.argv[2]);
const issuer = `http://127.0.0.1:${port}`;
const granted = ["corbie:read", "corbie:write"];
const refused = ["corbie:admin"];
const scopes = [...granted, ...refused];

function key(kid, alg, type, options) {
  const { privateKey } = generateKeyPairSync(type, options);
  return { ...privateKey.export({ format: "jwk" }), kid, alg, use: "sig" };
}

const provider = new Provider(issuer, {
  scopes: ["openid", "offline_access", ...scopes],
  cookies: { keys: ["nothing depends on this"] },
  jwks: {
    keys: [key("rsa", "RS256", "rsa", { modulusLength: 2048 }), key("curve", "ES256", "ec", { namedCurve: "P-256" })],
  },
  findAccount: (_, id) => ({ accountId: id, claims: () => ({ sub: id }) }),
  interactions: { url: (_, interaction) => `/interaction/${interaction.uid}` },
  pkce: { required: () => true },
  ttl: { AccessToken: 600, Grant: 600, Interaction: 600, RefreshToken: 600, Session: 600 },
  features: {
    devInteractions: { enabled: false },
    registration: { enabled: true },
    resourceIndicators: {
      enabled: true,
      useGrantedResource: () => true,
      getResourceServerInfo: (_, resource) => ({
        scope: scopes.join(" "),
        audience: resource,
        accessTokenFormat: "jwt",
        jwt: { sign: { alg: "ES256" } },
      }),
    },
  },
});

// The user's consent.
async function decide({ prompt, params, session }) {
  if (prompt.name === "login") {
    return { login: { accountId: "alice" } };
  }
  const grant = new provider.Grant({ accountId: session.accountId, clientId: params.client_id });
  grant.addOIDCScope("openid offline_access");
  grant.rejectOIDCScope(scopes.join(" "));
  grant.addResourceScope(params.resource, granted.join(" "));
  grant.rejectResourceScope(params.resource, refused.join(" "));
  return { consent: { grantId: await grant.save() } };
}

const answer = provider.callback();
createServer(async (request, response) => {
  if (!request.url.startsWith("/interaction/")) {
    answer(request, response);
    return;
  }
  const result = await decide(await provider.interactionDetails(request, response));
  await provider.interactionFinished(request, response, result, { mergeWithLastSubmission: true });
}).listen(port, "127.0.0.1");
